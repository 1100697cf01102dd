// swift-format-ignore-file
import Instar

typealias Zoo = ZooSchemaV1
let container = try makeContainer(Zoo.self)
let context = ModelContext(container)
let polly = Zoo.Parrot("Polly", words: ["good", "bye"])
polly.parent = Zoo.Bird("Petra", wingspan: 0.1)
let keeper = Keeper(name: "Kim", animals: [polly, Zoo.Animal(name: "Ant")])
context.insert(keeper)
try context.save()

let other = ModelContext(container)
let animals = try other.fetch(FetchDescriptor<Zoo.Animal>()).sorted()
check(animals.map(\.description) == ["Ant: …", "Petra: chirp", "Polly: good bye"])
check((animals[1] as? Zoo.Bird)?.canFly == false && animals[1].young.first === animals[2])
check((animals[2] as? Zoo.Parrot)?.kind == .macaw)
check(animals[2].keepers.first == keeper && animals[2].keepers.first?.animals.count == 2)
check(animals[2].keepers[0].hours == 8...17 && animals[2].keepers[0].days == [[1, 2], [3]])
check(!animals[2].keepers[0].isDeleted)
animals[2].rename(to: "Pollux")
try other.save()
let birds = FetchDescriptor<Zoo.Bird>(
  predicate: #Predicate { $0.keepers.contains { $0.name == "Kim" } }, sortBy: [SortDescriptor(\.name)])
check(try ModelContext(container).fetch(birds).map(\.name) == ["Pollux"])
