// swift-format-ignore-file
import Instar

let container = try ModelContainer(for: Signal.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
let context = ModelContext(container)
let signal = Signal(level: 2)
context.insert(signal)
signal.level = 4
signal.name = "a"
check(Signal.calls == 0)
signal.shown = 3
signal.half = 5
check(signal.cache == [10] && signal.nobody == nil && signal == Signal(level: 10))
try context.save()
let found = try ModelContext(container).fetch(FetchDescriptor<Signal>())[0]
check(found.label == "shown 3 10" && found.shown == 0)
let names = Schema([Signal.self]).entities[0].attributes.map(\.name).sorted()
check(names == ["level", "name"])
