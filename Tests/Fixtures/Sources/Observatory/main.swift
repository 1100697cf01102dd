// swift-format-ignore-file
import Instar

let counter = SaveCounter()
// Sightings are found by the relationship.
let container = try ModelContainer(for: Night.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
let archive = Archive(modelContainer: container)
let sightings = Data(#"[{"object": "Vega", "magnitude": 0.03}, {"object": "M31", "magnitude": 3.4}]"#.utf8)
let ids = try await archive.import(["Jena;100", "?", "Tautenburg;200"], sightings: sightings)
check(ids.count == 2 && counter.inserted == 6)

let context = container.mainContext
check(try Night.count(in: context) == 2 && Sighting.count(in: context) == 4)
check(try context.fetch(.nights(with: SightingFilter(text: "vega"))).map(\.place) == ["Tautenburg", "Jena"])
check(try context.fetch(.nights(with: SightingFilter(brighterThan: 1, places: ["Jena"]))).map(\.place) == ["Jena"])
check(try context.fetch(.nights(with: SightingFilter(text: "M31", brighterThan: 1))).isEmpty)
check(try context.fetch(FetchDescriptor(predicate: SightingFilter().predicate)).count == 4)
check(try context.fetch(FetchDescriptor<Sighting>()).min()?.object == "M31")

let isTouched = try await archive.touch(ids[0], seeing: .good)
check(isTouched)
let qualities = try await archive.values(FetchDescriptor<Night>()) { $0.seeing }
check(qualities.sorted() == [.fair, .good])
let latest = try await Watchman(modelContainer: container, limit: 1).latest()
check(latest == ["Tautenburg 2"])
try await archive.remove(ids[0])
let isThere = try await archive.touch(ids[0], seeing: .poor)
check(!isThere)
check(try Sighting.count(in: context) == 2)

let night = Night(place: "Roof", begin: .now)
night.draft = "clear"
context.insert(night)
// Memory that a failing initializer releases twice shows only now and then.
for _ in 0..<1000 {
    do {
        night.add(try Sighting(object: "", magnitude: 1))
        check(false)
    } catch ObservatoryError.noObject {}
}
try context.save()
let other = ModelContext(container)
check(try other.fetch(FetchDescriptor<Night>(predicate: #Predicate { $0.remarks == "clear" }))[0].isEmpty)
