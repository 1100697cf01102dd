// swift-format-ignore-file
import Instar

let container = try makeContainer(HabitSchemaV1.self)
let context = ModelContext(container)
let habit = Habit(name: "Walk")
habit.complete(on: .distantPast)
habit.kind = .build(goal: 3)
habit.counts = ["monday": 2]
habit.reminder = DateComponents(hour: 7, minute: 30)
habit.isArchived = true
context.insert(habit)
try context.save()

let found = try ModelContext(container).fetch(FetchDescriptor<Habit>())
check(found.count == 1)
let other = ModelContext(container)
let read = try other.fetch(FetchDescriptor<Habit>())[0]
check(read.uid == habit.uid && read.name == "Walk" && read.order == 20)
check(read.kind == .build(goal: 3) && read.schedule == .daily && read.color.red == 0.5)
check(read.counts == ["monday": 2] && read.weekdays == [1, 2, 3])
check(read.reminder?.hour == 7 && read.isArchived && read.link?.host == "example.com")
check(read.streak == 1 && read.completions[0].habit === read)
let copy = try JSONDecoder().decode(Habit.self, from: JSONEncoder().encode(habit))
check(copy.uid == habit.uid && copy.weekdays == [1, 2, 3] && copy.upper == "LAZY")
