// swift-format-ignore-file
import Instar

let container = try makeContainer(DevicesSchemaV1.self)
let context = ModelContext(container)
let device = Device(serial: "A1")
device.settings.mode = .eco
device.photo = Data([1, 2, 3])
device.readings.append(Reading(time: .distantPast, celsius: 20.5))
device.readings.append(Reading(time: .distantFuture, celsius: 21.5))
context.insert(device)
try context.save()

let other = ModelContext(container)
let read = try other.fetch(FetchDescriptor(predicate: Device.named("Device")))[0]
check(read.settings.mode == .eco && read.settings.interval == 60)
check(read.latest?.celsius == 21.5 && read.photo == Data([1, 2, 3]))
check(read.dump().hasPrefix("A1"))
