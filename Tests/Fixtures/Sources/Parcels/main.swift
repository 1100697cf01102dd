// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    let parcel = ParcelsV1.Parcel(id: UUID(), createdAt: Date(timeIntervalSinceReferenceDate: 60), kind: .box)
    context.insert(parcel)
    parcel.stops = [.init("Oslo"), .init("Rome")]
    context.insert(ParcelsV1.Parcel(id: UUID(), createdAt: Date(timeIntervalSinceReferenceDate: 7), kind: .letter))
}

try makeStore(ParcelsV1.self, fill: fill)

let context = ModelContext(try makeContainer(ParcelsV1.self))
context.undoManager = UndoManager()
fill(context)
try context.save()
let other = ModelContext(context.container)
let parcels = try other.fetch(
    FetchDescriptor<ParcelsV1.Parcel>(sortBy: [SortDescriptor(\.createdAt)]))
check(parcels.map(\.label) == ["letter 1.5", "box 1.5"])
check(Set(parcels[1].stops.map(\.place)) == ["Oslo", "Rome"])
let id = parcels[0].id
check(try other.fetchCount(FetchDescriptor<ParcelsV1.Parcel>(predicate: #Predicate { $0.id == id })) == 1)
parcels[1].reset()
check(parcels[1].stops.isEmpty)
check(Schema.entityName(for: ParcelsV1.Parcel.self) == "Parcel")
check(other.container.schema.encodingVersion == Schema.Version(1, 0, 0))
