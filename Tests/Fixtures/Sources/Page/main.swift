// swift-format-ignore-file
import Instar
import Observation

try makeStore(PageSchemaV1.self) { context in
    let folder = PageSchemaV1.Folder(name: "inbox")
    for name in ["one", "two"] {
        let note = PageSchemaV1.Note(name: name, content: "text of \(name)")
        note.subtitle = "gone"
        note.folder = folder
        context.insert(note)
    }
}

// MARK: Schemas

let schema = Schema(versionedSchema: CurrentVersion.self)
check(schema.version == Schema.Version(3, 0, 0) && "\(schema.version)" == "3.0.0")
check(schema.entities.map(\.name) == ["Everything", "Folder", "Note", "Person", "Tag", "Ticket"])
check(schema.entity(for: Note.self)?.attributesByName["content"]?.originalName == "contentNew")
check(schema.entitiesByName["Note"]?.uniquenessConstraints.contains(["title", "createdAt"]) == true)
check(schema.entitiesByName["Note"]?.indices.contains(["priority", "title"]) == true)
check(schema.entitiesByName["Folder"]?.relationshipsByName["notes"]?.deleteRule == .cascade)
check(schema.entitiesByName["Note"]?.relationshipsByName["folder"]?.inverseName == "notes")
check(schema.entitiesByName["Everything"]?.attributesByName["large"]?.options.contains(.externalStorage) == true)
check(schema.entitiesByName["Everything"]?.attributesByName["drawing"]?.isTransformable == true)
check((schema.entitiesByName["Everything"]?.storedPropertiesByName["address"] as? Schema.CompositeAttribute)?.properties.count == 3)
check(Schema([Tag.self], version: Schema.Version(1, 1, 0)).entity(for: Tag.self)?.name == "Tag")
check(Schema(PageSchemaV1.Note.self, PageSchemaV1.Folder.self).entities.count == 2)
check(Schema.Version(1, 2, 0) < Schema.Version(1, 10, 0))

// MARK: Containers

let configuration = ModelConfiguration("page", schema: schema, isStoredInMemoryOnly: true, cloudKitDatabase: .none)
let container = try ModelContainer(for: schema, migrationPlan: PagePlan.self, configurations: [configuration])
check(container.schema == schema && container.configurations.count == 1)
let context = ModelContext(container)
context.autosaveEnabled = false
check(context.container === container && !context.autosaveEnabled)

// As people's tests do, in Swift 5 mode.
#if swift(<6)
func withoutIsolation(_ container: ModelContainer) throws -> Int {
    try container.mainContext.fetchCount(FetchDescriptor<Note>())
}
check(try withoutIsolation(container) == 0)
#endif
check(try container.mainContext.fetch(FetchDescriptor<Note>()).isEmpty)

// MARK: Everything that can be stored

let everything = Everything()
everything.priorityOrNil = .high
everything.reminderOrNil = .near(place: "home", meters: 20)
everything.addressOrNil = Address(street: "a", city: "b", zip: 1)
everything.addresses = [Address(street: "a", city: "b"), Address(street: "c", city: "d", zip: 3)]
everything.numbers = [1, 2, 3]
everything.priorities = [.low, .high]
everything.large = Data(repeating: 7, count: 300_000)
everything.color = Color(red: 1, green: 0.5)
everything.drawing = Drawing(strokes: [1, 2])
everything.sketch = Drawing(strokes: [3])
everything.textOrNil = AttributedString("styled")
everything.decimalOrNil = Decimal(string: "10.25")
everything.urlOrNil = URL(string: "https://swift.org/a?b")
context.insert(everything)
try context.save()

let kept = try ModelContext(container).fetch(FetchDescriptor<Everything>())[0]
check(kept.string == "ab" && kept.stringOrNil == nil && kept.bool && kept.int == -1 && kept.uint64 == .max)
check(kept.double == 1.5 && kept.float == 1.5 && kept.decimalOrNil == Decimal(string: "10.25"))
check(kept.priority == .low && kept.priorityOrNil == .high && kept.priorities == [.low, .high])
check(kept.reminder == .never && kept.reminderOrNil == .near(place: "home", meters: 20) && kept.shape == .round)
check(kept.address.city == "c" && kept.addressOrNil?.zip == 1 && kept.addresses.last?.zip == 3)
check(kept.strings == ["x"] && kept.numbers == [1, 2, 3] && kept.dates.isEmpty)
check(kept.large?.count == 300_000 && kept.color.green == 0.5)
check(kept.drawing?.strokes == [1, 2] && kept.sketch?.strokes == [3])
check(kept.text == AttributedString("plain") && kept.textOrNil == AttributedString("styled"))
check(kept.uuid == everything.uuid && kept.url == everything.url && kept.date == everything.date)

// MARK: Notes

let inbox = Folder(name: "inbox")
let archive = Folder(name: "archive", parent: inbox)
let red = Tag("red"), blue = Tag("blue")
var notes: [Note] = []
for number in 0..<6 {
    let note = Note("note \(number)", in: number < 4 ? inbox : nil)
    note.views = number
    note.rating = number % 2 == 0 ? Double(number) : nil
    note.keywords = number == 5 ? ["last", "odd"] : []
    note.tags = number % 3 == 0 ? [red, blue] : [blue]
    note.address = number == 1 ? Address(street: "x", city: "Oslo") : nil
    note.status = number == 2 ? .done : .open
    note.createdAt = Date(timeIntervalSinceReferenceDate: Double(number) * 100)
    context.insert(note)
    notes.append(note)
}
notes[0].related = [notes[1], notes[2]]
notes[3].raise()
context.insert(archive)
check(context.hasChanges && context.insertedModelsArray.contains { $0 === notes[0] })
check(notes[0].persistentModelID.storeIdentifier == nil)
try context.save()
check(!context.hasChanges && notes[0].persistentModelID.storeIdentifier != nil)
check(inbox.notes?.count == 4 && inbox.children.map(\.name) == ["archive"] && red.notes.count == 2)

// MARK: Predicates and order

func titles(_ predicate: Predicate<Note>?) throws -> [Int] {
    let descriptor = FetchDescriptor<Note>(predicate: predicate, sortBy: [SortDescriptor(\.views)])
    return try ModelContext(container).fetch(descriptor).map(\.views)
}

let wanted = ["note 1", "note 4"]
let two = 2
let same = ComparisonResult.orderedSame
let high = Priority.high
let done = Status.done
let middle = Date(timeIntervalSinceReferenceDate: 250)
let inboxID = inbox.persistentModelID

check(try titles(nil) == [0, 1, 2, 3, 4, 5])
check(try titles(#Predicate { $0.views == two }) == [2])
check(try titles(#Predicate { note in note.views > 1 && note.views <= 3 }) == [2, 3])
check(try titles(#Predicate { $0.views < 1 || $0.views >= 5 }) == [0, 5])
check(try titles(#Predicate { !($0.views != 4) }) == [4])
check(try titles(#Predicate { $0.rating == nil }) == [1, 3, 5])
check(try titles(#Predicate { ($0.rating ?? 9) > 3 }) == [1, 3, 4, 5])
check(try titles(#Predicate { note in
    if let rating = note.rating { return rating > 1 } else { return false }
}) == [2, 4])
check(try titles(#Predicate { $0.views * 2 + 1 - 1 == 8 }) == [4])
check(try titles(#Predicate { $0.views % 2 == 1 }) == [1, 3, 5])
check(try titles(#Predicate { $0.title.contains("e 3") }) == [3])
check(try titles(#Predicate { $0.title.starts(with: "note 2") }) == [2])
check(try titles(#Predicate { $0.title.localizedStandardContains("NOTE 1") }) == [1])
check(try titles(#Predicate { $0.title.caseInsensitiveCompare("Note 5") == same }) == [5])
check(try titles(#Predicate { $0.title.isEmpty }) == [])
check(try titles(#Predicate { wanted.contains($0.title) }) == [1, 4])
check(try titles(#Predicate { $0.keywords.contains("odd") }) == [5])
check(try titles(#Predicate { $0.createdAt < middle }) == [0, 1, 2])
check(try titles(#Predicate { $0.priority == high }) == [3])
check(try titles(#Predicate { $0.status == done }) == [2])
check(try titles(#Predicate { $0.address?.city == "Oslo" }) == [1])
check(try titles(#Predicate { $0.folder?.name == "inbox" && $0.views > 2 }) == [3])
check(try titles(#Predicate { $0.folder == nil }) == [4, 5])
check(try titles(#Predicate { $0.folder?.persistentModelID == inboxID }) == [0, 1, 2, 3])
check(try titles(#Predicate { $0.tags.contains { $0.name == "red" } }) == [0, 3])
check(try titles(#Predicate { $0.tags.contains(where: { $0.name.starts(with: "r") || $0.name == "x" }) }) == [0, 3])
check(try titles(#Predicate { $0.tags.allSatisfy { $0.name == "blue" } }) == [1, 2, 4, 5])
check(try titles(#Predicate { $0.tags.filter { $0.name == "blue" }.count == 1 && $0.tags.count == 2 }) == [0, 3])
check(try titles(#Predicate { !$0.related.isEmpty }) == [0])
check(try titles(#Predicate { (1...2).contains($0.views) || (4..<5).contains($0.views) }) == [1, 2, 4])
check(try titles(#Predicate { $0.views > 2 ? $0.rating == nil : $0.rating != nil }) == [0, 2, 3, 5])

var descriptor = FetchDescriptor<Note>(sortBy: [SortDescriptor(\Note.views, order: .reverse), .init(\.title)])
descriptor.predicate = #Predicate<Note> { $0.views > 0 }
descriptor.fetchLimit = 2
descriptor.fetchOffset = 1
descriptor.includePendingChanges = false
descriptor.propertiesToFetch = [\.title, \.views]
descriptor.relationshipKeyPathsForPrefetching = [\.folder, \.tags]
check(try context.fetch(descriptor).map(\.views) == [4, 3])
check(try context.fetchCount(FetchDescriptor<Note>(predicate: #Predicate { $0.views > 3 })) == 2)
check(try context.fetchIdentifiers(FetchDescriptor<Note>()).count == 6)
check(try context.fetch(FetchDescriptor<Note>(), batchSize: 4).map(\.views).count == 6)
var seen = 0
try context.enumerate(FetchDescriptor<Note>(), batchSize: 2, allowEscapingMutations: false) { _ in seen += 1 }
check(seen == 6)

// MARK: Identity, registered models, observation

let id = notes[2].persistentModelID
let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: JSONEncoder().encode(id))
check(decoded == id && id.entityName == "Note")
check((context.model(for: id) as? Note) === notes[2])
let registered: Note? = context.registeredModel(for: id)
check(registered === notes[2])
let ada = PageSchemaV3.Person(id: "ada", givenName: "Ada")
check(ada.id == "ada")
ada.ticket = PageSchemaV3.Ticket(number: 7)
context.insert(ada)
try context.save()

final class Flag: @unchecked Sendable { var isSet = false }
let flag = Flag()
withObservationTracking { _ = notes[2].headline } onChange: { flag.isSet = true }
notes[2].headline = "NOTE 2 AGAIN"
check(flag.isSet && notes[2].title == "note 2 again" && notes[2].hasChanges)
check(context.changedModelsArray.contains { $0 === notes[2] })
context.rollback()
check(notes[2].title == "note 2" && !context.hasChanges)

// MARK: Saving

try context.transaction { notes[2].views = 20 }
check(!context.hasChanges)
struct Stop: Error {}
do {
    try context.transaction {
        notes[2].views = 21
        throw Stop()
    }
    check(false)
} catch is Stop {
    check(notes[2].views == 20)
}
context.insert(Tag("red"))
try context.save()
check(try context.fetchCount(FetchDescriptor<Tag>()) == 2)

context.delete(notes[5])
check(notes[5].isDeleted && context.deletedModelsArray.count == 1)
try context.save()
try context.delete(model: Note.self, where: #Predicate { $0.views == 4 })
try context.save()
check(try context.fetchCount(FetchDescriptor<Note>()) == 4)
do {
    context.delete(archive)
    try context.save()
    check(false)
} catch SwiftDataError.modelValidationFailure {
    context.rollback()
}
archive.parent = nil
context.delete(inbox)
try context.save()
check(try context.fetchCount(FetchDescriptor<Note>()) == 0)

// MARK: Errors

do {
    _ = try context.fetch(FetchDescriptor<Note>(predicate: #Predicate { $0.isOpen }))
    check(false)
} catch SwiftDataError.unsupportedPredicate {
}
let rooted = try makeContainer(PageSchemaIncomplete.self)
check(rooted.schema.entitiesByName.keys.contains("Folder"))
let reached = try ModelContainer(for: Note.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
check(reached.schema.entitiesByName.keys.contains("Folder"))

// MARK: From version 1 to 3 on one configuration

let memory = ModelConfiguration(isStoredInMemoryOnly: true)
do {
    let old = try ModelContainer(for: Schema(versionedSchema: PageSchemaV1.self), configurations: memory)
    let oldContext = ModelContext(old)
    let note = PageSchemaV1.Note(name: "first", content: "text")
    note.folder = PageSchemaV1.Folder(name: "box")
    oldContext.insert(note)
    try oldContext.save()
}
let new = try ModelContainer(
    for: Note.self, Folder.self, Tag.self, Everything.self, PageSchemaV3.Person.self, PageSchemaV3.Ticket.self,
    migrationPlan: PagePlan.self, configurations: memory)
let newContext = ModelContext(new)
let migrated = try newContext.fetch(FetchDescriptor<Note>())
check(migrated.map(\.title) == ["first"] && migrated[0].text == "text" && migrated[0].folder?.name == "box")
check(migrated[0].tags.map(\.name) == ["migrated"] && migrated[0].priority == .normal)
try new.erase()
check(try newContext.fetchCount(FetchDescriptor<Note>()) == 0)
new.deleteAllData()
