// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    let north = TaproomV1.Tap(uid: "north")
    north.note = "clean"
    north.flavours = ["oak", "hay"]
    north.state = .open(0.5)
    north.lastReading = Reading(degrees: 4)
    context.insert(north)
    north.add(TaproomV1.Pour(litres: 0.5))
    north.add(TaproomV1.Pour(litres: 0.25))
    let extra = TaproomV1.Pour(litres: 9)
    north.add(extra)
    north.remove(extra)
    context.insert(TaproomV1.Tap(uid: "south"))
}

try makeStore(TaproomV1.self, fill: fill)

let context = ModelContext(try makeContainer(TaproomV1.self))
fill(context)
try context.save()
let other = ModelContext(context.container)
let taps = try other.fetch(FetchDescriptor<TaproomV1.Tap>(sortBy: [SortDescriptor(\.uid)]))
check(taps.map(\.uid) == ["north", "south"])
check(taps[0].total == 0.75 && taps[0].note == "clean" && taps[0].lastReading == nil)
check(taps[0].flavours == ["hay", "oak"] && taps[0].state == .open(0.5) && taps[1].state == .waiting)
check(taps[0].pours?.first?.tap === taps[0])
let copy = try JSONDecoder().decode(TaproomV1.Tap.self, from: JSONEncoder().encode(taps[0]))
check(copy.uid == "north" && copy.state == .open(0.5) && copy.pours == [])
