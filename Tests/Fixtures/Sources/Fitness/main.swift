// swift-format-ignore-file
import Foundation
import Instar

typealias Old = FitSchemaV1

func day(_ seconds: Double) -> Date { Date(timeIntervalSinceReferenceDate: seconds) }

try makeStore(Old.self) { context in
    let ada = Old.Athlete(name: "Ada King")
    ada.createdAt = day(1)
    ada.home = GeoPoint(latitude: 1, longitude: 2, altitude: nil)
    ada.weights = [70.5]
    let ada2 = Old.Athlete(name: "ADA king", email: "x@y")
    ada2.createdAt = day(2)
    let bo = Old.Athlete(name: "Bo", email: "bo@z")
    bo.createdAt = day(3)
    for a in [ada, ada2, bo] { context.insert(a) }
    let shoe = Old.Gear(brand: "Asix", model: "K")
    shoe.price = 99.5
    shoe.owner = ada2
    context.insert(shoe)
    let race = Old.Tag("race")
    context.insert(race)
    let r1 = Old.Run(start: day(100), duration: 1800, meters: 5000)
    r1.athlete = ada2
    r1.shoe = shoe
    r1.splits = [.init(1, 300), .init(2, 310)]
    r1.tags = [race]
    r1.route = [.init(latitude: 1, longitude: 1, altitude: 40), .init(latitude: 2, longitude: 2, altitude: 55)]
    let r2 = Old.Run(start: day(200), duration: 100, meters: 500)
    r2.athlete = bo
    let r3 = Old.Run(start: day(-50), duration: 100, meters: 700)
    r3.athlete = bo
    r3.isArchived = true
    let s = Old.Strength(start: day(300), duration: 60)
    s.athlete = bo
    s.intensity = .power(watts: 200, ftp: 250)
    for a in [r1, r2, r3, s] as [Old.Activity] { context.insert(a) }
    let squat = Old.Exercise(name: "Squat", group: .legs)
    squat.secondary = [.core, .back]
    squat.picture = Data(count: 300_000)
    context.insert(squat)
    s.sets = [.init(order: 0, reps: 5, load: Load(kilograms: 80), exercise: squat), .init(order: 1, reps: 3, load: Load(kilograms: 100), kind: .failure, exercise: squat)]
    let g = Old.Goal(title: "10k", target: 40, unit: "min", deadline: "2025-06-01")
    g.athlete = ada
    context.insert(g)
}

let model = try FitModel(inMemory: true)
await model.add("Zoe 10")
await model.add("Zoe 9")
check(model.athletes.map(\.fullName) == ["Zoe 9", "Zoe 10"])
let store = FitStore(modelContainer: model.container)
let longest = try await store.longest()
check(longest.count == 2)
