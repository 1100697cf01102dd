// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    let first = HarborSchemaV1.Ship(name: "Ran", flagName: "norway", lastSeen: Date(timeIntervalSinceReferenceDate: 5))
    first.berth = Berth(number: 7)
    first.cargo = [.init(tons: 3), .init(tons: 4)]
    context.insert(first)
    context.insert(HarborSchemaV1.Ship(name: "Ran", flagName: "atlantis"))
    context.insert(HarborSchemaV1.Log(text: "fog", seconds: 60))
    context.insert(HarborSchemaV1.Log(text: "storm", seconds: 30))
}

try makeStore(HarborSchemaV1.self, fill: fill)

let memory = ModelConfiguration(isStoredInMemoryOnly: true)
do {
    let old = ModelContext(try ModelContainer(for: Schema(versionedSchema: HarborSchemaV1.self), configurations: memory))
    fill(old)
    try old.save()
}
let container = try ModelContainer(
    for: Schema(versionedSchema: HarborSchemaV3.self), migrationPlan: HarborMigrationPlan.self, configurations: [memory])
check(container.migrationPlan == HarborMigrationPlan.self)
let context = container.mainContext
let ships = try context.fetch(FetchDescriptor<Ship>(sortBy: [SortDescriptor(\.name)]))
check(ships.map(\.name) == ["Ran", "Ran 2"] && Set(ships.map(\.flag)) == [.norway, .unknown])
check(Set(ships.map(\.berth.number)) == [0, 7])
let norwegian = ships.first { $0.flag == .norway }
check(norwegian?.seenBefore?.timeIntervalSinceReferenceDate == 5 && norwegian?.cargo?.count == 2)
let entries = try context.fetch(FetchDescriptor<Entry>(sortBy: [SortDescriptor(\.time)]))
check(entries.map(\.text) == ["storm", "fog"] && Set(entries.map(\.identifier)).count == 2)
