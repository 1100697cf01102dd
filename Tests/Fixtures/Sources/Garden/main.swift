// swift-format-ignore-file
import Foundation
import Instar

try makeStore(GardenSchemaV1.self) { context in
    let garden = GardenSchemaV1.Garden(name: "South")
    let bed = GardenSchemaV1.Bed(label: "herbs")
    garden.beds = [bed]
    bed.plants = [Plant(name: "sage"), Plant(name: "thyme")]
    context.insert(garden)
}

let container = try makeContainer(GardenSchemaV2.self)
check(container.schema.entities.map(\.name) == ["Bed", "Garden", "Plant"])
let context = ModelContext(container)
let garden = Garden(name: "North")
let bed = Bed(title: "roses")
garden.beds = [bed]
bed.plants = [Plant(name: "rose"), Plant(name: "clover")]
context.insert(garden)
try context.save()

let other = ModelContext(container)
let found = try other.fetch(FetchDescriptor<Bed>()).first
check(Set(found?.plants.map(\.name) ?? []) == ["rose", "clover"])
found?.plants.removeAll { $0.name == "clover" }
try other.save()
let third = ModelContext(container)
check(try third.fetch(FetchDescriptor<Bed>()).first?.plants.map(\.name) == ["rose"])
if let found { other.delete(found) }
try other.save()
check(try other.fetch(FetchDescriptor<Plant>()).map(\.name) == ["clover"])

// A container on the store of the last version, opened with the plan, and with the models only.
let configuration = ModelConfiguration(isStoredInMemoryOnly: true)
let old = ModelContext(
    try ModelContainer(for: GardenSchemaV1.Garden.self, configurations: configuration))
old.insert(GardenSchemaV1.Garden(name: "West"))
try old.save()
let migrated = try ModelContainer(for: Garden.self, migrationPlan: GardenMigrationPlan.self, configurations: configuration)
check(try ModelContext(migrated).fetch(FetchDescriptor<Garden>()).map(\.city) == ["unknown"])
