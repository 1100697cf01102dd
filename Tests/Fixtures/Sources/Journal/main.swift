// swift-format-ignore-file
import Instar

typealias Entry = JournalSchemaV1.Entry
let container = try makeContainer(JournalSchemaV1.self)
let context = ModelContext(container)
check(Entry(Entry.Draft()) == nil)
let entry = Entry(Entry.Draft(name: "Monday", text: "rain again"))!
entry.moods = [.init(score: 3)]
entry.archive()
context.insert(entry)
try context.save()
let other = ModelContext(container)
let read = try other.fetch(FetchDescriptor<Entry>())
check(read[0].isArchived && read[0][word: 1] == "again" && read[0].moods[0].score == 3)
check("\(read[0])".contains("Monday") || read[0].debugDescription == "Entry(Monday)")
check(Set(read).count == 1 && JournalSchemaV1.Mood.title == "Mood")
