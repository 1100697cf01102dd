// swift-format-ignore-file
import Foundation
import Instar

try makeStore(SightingsSchemaV1.self) { context in
    context.author = "app"
    for name in ["heron", "wren"] {
        let bird = SightingsSchemaV1.Bird(name: name)
        bird.sightings = [.init(count: 2, place: "pond")]
        context.insert(bird)
    }
    let lost = SightingsSchemaV1.Bird(name: "dodo")
    context.insert(lost)
    try? context.save()
    context.delete(lost)
}

let container = try makeContainer(SightingsSchemaV2.self)
var tracker = ChangeTracker(container: container)
let context = ModelContext(container)
context.author = "app"
let robin = Bird(name: "robin")
context.insert(robin)
try context.save()

let (first, firstToken) = tracker.findBirds(in: tracker.findTransactions(after: nil, author: "app"))
check(first.map(\.name) == ["robin"])
if let firstToken { tracker.remember(firstToken) }
check(tracker.token == firstToken)

robin.code = "ROB"
try context.save()
let other = ModelContext(container)
other.author = "import"
other.insert(Bird(name: "finch"))
try other.save()
let later = tracker.findTransactions(after: tracker.token, author: "app")
check(later.count == 1)
let change = later.first?.changes.first
if case .update(let update as DefaultHistoryUpdate<Bird>) = change {
    check(update.updatedAttributes.count == 1 && update.updatedAttributes.contains(\.code))
    check(update.changedPersistentIdentifier == robin.persistentModelID)
} else {
    check(false)
}

context.delete(robin)
try context.save()
let deletion = tracker.findTransactions(after: later.last?.token, author: "app").first?.changes.first
if case .delete(let delete) = deletion, let bird = delete as? DefaultHistoryDelete<Bird> {
    check(bird.tombstone[\.name] as? String == "robin")
    check(bird.tombstone[\.code] as? String == "ROB")
    check(Array(bird.tombstone).count == 2)
} else {
    check(false)
}

if let last = later.last { try tracker.deleteTransactions(before: last.token) }
do {
    var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
    if let old = firstToken { descriptor.predicate = #Predicate { $0.token >= old } }
    _ = try context.fetchHistory(descriptor)
    check(false)
} catch SwiftDataError.historyTokenExpired {
}
