// swift-format-ignore-file
import Foundation
import Instar

func fill(_ context: ModelContext) {
    for day in 0..<3 {
        context.insert(
            AlmanacV1.Day(
                date: Date(timeIntervalSinceReferenceDate: Double(day)), moon: day + 1, tags: ["t\(day)"],
                weather: day == 1 ? [:] : ["max": Double(day) + 0.5]))
    }
    context.insert(AlmanacV1.Saying(text: "red sky"))
}

try makeStore(AlmanacV1.self, fill: fill)

let context = ModelContext(try makeContainer(AlmanacV1.self))
fill(context)
try context.save()
let days = try context.fetch(FetchDescriptor<AlmanacV1.Day>(sortBy: [SortDescriptor(\.date)]))
check(days.map { $0.weather["max"] } == [0.5, nil, 2.5])
check(autoreleasepool { days.count } == 3)
check([URL.documentsDirectory, .applicationSupportDirectory, .cachesDirectory].allSatisfy(\.isFileURL))
