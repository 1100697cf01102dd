// swift-format-ignore-file
import Instar

try makeStore(TripsSchemaV1.self) { context in
    for name in ["Rome", "Rome", "Oslo"] {
        let trip = TripsSchemaV1.Trip(name: name, destination: name, startDate: .distantPast, endDate: .distantPast)
        trip.livingAccommodation = .init(address: "\(name) 1", placeName: "Hotel")
        context.insert(trip)
    }
}

let container = try makeContainer(TripsSchemaV3.self)
let context = ModelContext(container)
let trip = Trip.preview
trip.livingAccommodation = LivingAccommodation(address: "Yosemite Ave", placeName: "Camp 4")
context.insert(trip)
context.insert(BusinessTrip(name: "WWDC", destination: "Cupertino", perdiem: 120))
context.insert(PersonalTrip(name: "Reunion", destination: "Aarhus", reason: .family))
try context.save()

let other = ModelContext(container)
let trips = try other.fetch(FetchDescriptor<Trip>(sortBy: [SortDescriptor(\Trip.name)]))
check(trips.map(\.name) == ["Camping!", "Reunion", "WWDC"])
check((trips[1] as? PersonalTrip)?.reason == .family)
check((trips[2] as? BusinessTrip)?.perdiem == 120)
check(trips[0].livingAccommodation?.trip === trips[0])
check(trips[0].isPast)
let expensive = FetchDescriptor<BusinessTrip>(predicate: #Predicate { $0.perdiem > 100 && $0.name != "" })
check(try other.fetchCount(expensive) == 1)
let business = #Predicate<Trip> { $0 is BusinessTrip }
check(try other.fetch(FetchDescriptor(predicate: business)).map(\.destination) == ["Cupertino"])
