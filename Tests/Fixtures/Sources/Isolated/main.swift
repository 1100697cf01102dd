// swift-format-ignore-file
import Instar

let configuration = ModelConfiguration(isStoredInMemoryOnly: true)
let old = try ModelContainer(for: Schema(versionedSchema: PantrySchemaV1.self), configurations: configuration)
let shelf = PantrySchemaV1.Shelf(name: "top")
let jar = PantrySchemaV1.Jar(content: "jam")
jar.maker = .init(name: "Ida", city: "Odense")
shelf.jars = [jar]
old.mainContext.insert(shelf)
try old.mainContext.save()
check(try old.mainContext.fetch(FetchDescriptor<PantrySchemaV1.Jar>(predicate: #Predicate { $0.shelf?.name == "top" })).count == 1)
check(jar.title == "jam (small)" && !jar.isOpen)

let new = try ModelContainer(for: PantrySchemaV2.Jar.self, migrationPlan: PantryPlan.self, configurations: configuration)
check(try new.mainContext.fetch(FetchDescriptor<PantrySchemaV2.Jar>()).map(\.label) == ["JAM (SMALL)"])
