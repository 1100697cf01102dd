// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    let ada = KennelV1.Dog(chip: "a1", title: "Ada", fee: 12.5, weight: 20)
    ada.walks = ["park": [2, 1]]
    ada.record.trainings["guide"] = KennelRecord.Training(hours: [3])
    ada.origin = .found(place: "lake", year: nil)
    ada.ages = 2...9
    ada.scan = Data(count: 200_000)
    let stays = [1, 5].map { KennelV1.Dog.Stay(from: Date(timeIntervalSinceReferenceDate: Double($0 * 86_400)), nights: $0) }
    ada.stays = stays
    context.insert(ada)
    let bo = KennelV1.Dog(chip: "b1", title: "Bo", fee: 7, weight: 4)
    ada.puppies = [bo]
    let owner = KennelV1.Owner(name: "Eve")
    owner.dogs = [ada, bo]
    context.insert(owner)
}

try makeStore(KennelV1.self, fill: fill)

let context = ModelContext(try makeContainer(KennelV1.self))
fill(context)
try context.save()
let other = ModelContext(context.container)
let dogs = try other.fetch(FetchDescriptor<KennelV1.Dog>(sortBy: [SortDescriptor(\.chip)]))
check(dogs.map(\.chip) == ["a1", "b1"])
check(dogs[1].dam === dogs[0] && dogs[0].puppies == [dogs[1]])
check(dogs[0].stays.map(\.nights).sorted() == [1, 5])
check(dogs[0].walks == ["park": [2, 1]] && dogs[0].ages == 2...9)
check(dogs[0].record.trainings["guide"]?.hours == [3] && dogs[0].record.absence == nil)
check(dogs[0].origin == .found(place: "lake", year: nil) && dogs[1].origin == nil)
check(dogs[0].scan?.count == 200_000 && dogs[0].fee == 12.5)
check(dogs[1].owners?.first?.dogs?.count == 2)

let staysSummary = MainActor.assumeIsolated { KennelPlan.stays.summary }
check(staysSummary == "1.0.0 to 2.0.0, a willMigrate, a didMigrate")
check(MigrationStage.lightweight(fromVersion: KennelV1.self, toVersion: KennelV2.self).summary == "1.0.0 to 2.0.0")

// The catalogue of an exporter: every relationship, by its key path.
let dogEntity = context.container.schema.entitiesByName["Dog"]
var related: [String] = []
for property in dogEntity?.storedProperties ?? [] where property.isRelationship {
    guard let relationship = property as? Schema.Relationship, let keyPath = relationship.keypath else { continue }
    let value = (keyPath as? PartialKeyPath<KennelV1.Dog>).flatMap { dogs[0][keyPath: $0] as? [any PersistentModel] }
    related.append("\(relationship.name) \(value?.count ?? 0) \(relationship.inverseKeyPath == nil ? "alone" : "paired")")
}
check(related.sorted() == ["dam 0 paired", "owners 1 paired", "puppies 1 paired", "stays 2 paired"])
check(dogEntity?.relationshipsByName["stays"]?.inverseKeyPath == \KennelV1.Dog.Stay.dog)
check(dogEntity?.storedProperties.contains { $0.isAttribute == $0.isRelationship || $0.isTransient } == false)
