// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    context.insert(ClinicV1.Visit(patient: "Ada", minutes: 45, isPaid: false))
    context.insert(ClinicV1.Visit(patient: "Bo", minutes: 45, isPaid: false))
    context.insert(ClinicV1.Visit(patient: "Cleo", minutes: 60, isPaid: true))
    context.insert(ClinicV1.Visit(patient: "Dana", minutes: 60, isPaid: false, notes: "asked twice"))
    context.insert(ClinicV1.Visit(patient: "Eve", minutes: 10, isPaid: false))
}

try makeStore(ClinicV1.self, fill: fill)

let context = ModelContext(try makeContainer(ClinicV1.self))
fill(context)
let due = FetchDescriptor(predicate: ClinicV1.Visit.isDue(after: 30))
check(try context.fetch(due).map(\.patient) == ["Ada"])
try context.save()
check(try ModelContext(context.container).fetch(due).map(\.patient) == ["Ada"])
