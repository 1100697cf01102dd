// swift-format-ignore-file
import Foundation
import Instar

func day(_ seconds: Double) -> Date { Date(timeIntervalSinceReferenceDate: seconds) }

func fill(_ context: ModelContext) {
    let a = Ledgers.V1.Account(name: "Main", iban: "NO1", opening: Money(amount: 100.5, currency: .nok))
    context.insert(a)
    let b = Ledgers.V1.Account(name: "Rainy", kind: .savings, sortOrder: 1, opening: Money(amount: 7, currency: .nok))
    b.isClosed = false
    context.insert(b)
    let z = Ledgers.V1.Account(name: "Old", kind: .credit, sortOrder: 2, opening: Money(amount: 0, currency: .usd))
    z.isClosed = true
    context.insert(z)
    let food = Ledgers.V1.Category(path: "food", title: "Food")
    context.insert(food)
    let out = Ledgers.V1.Category(path: "food/out", title: "Out", parent: food)
    context.insert(out)
    let p1 = Ledgers.V1.Payee(name: "Café"), p2 = Ledgers.V1.Payee(name: "Café", website: URL(string: "https://c.no")), p3 = Ledgers.V1.Payee(name: "Job")
    for p in [p1, p2, p3] { context.insert(p) }
    let l = Ledgers.V1.Label(text: "trip"), m = Ledgers.V1.Label(text: "work")
    context.insert(l)
    context.insert(m)
    let e1 = Ledgers.V1.Entry(date: day(500_000), amount: -12.25, account: a, category: out, payee: p1, labels: [l, m])
    e1.recurrence = Recurrence(unit: .month, interval: 1)
    e1.attachments = [Attachment(name: "r.pdf", bytes: Data([1, 2]), mime: .init(rawValue: "application/pdf"))]
    let e2 = Ledgers.V1.Entry(date: day(600_000), amount: -3, memo: "tip", account: a, category: food, payee: p2, labels: [l])
    let e3 = Ledgers.V1.Entry(date: day(700_000), amount: 1000, account: b, payee: p3)
    let e4 = Ledgers.V1.Entry(date: day(10), amount: 0, memo: "nothing", account: b)
    for e in [e1, e2, e3, e4] { context.insert(e) }
    let bu = Ledgers.V1.Budget(month: 3, year: 2024, limit: 250)
    bu.categories = [food, out]
    context.insert(bu)
    let r = Ledgers.V1.Rule(pattern: "café*", actions: ["tag", "move"])
    r.target = out
    context.insert(r)
    a.snapshots = [.init(day: day(1), value: 3)]
}

try makeStore(Ledgers.V1.self, fill: fill)

let context = ModelContext(try makeContainer(Ledgers.V1.self))
fill(context)
try context.save()
let other = ModelContext(context.container)
let main = try other.existing(Ledgers.V1.Account.self, matching: #Predicate { $0.name == "Main" })
check(main?.balance == 85.25 && main?.debugDescription == "CHECKING Main")
check(try other.all(Ledgers.V1.Category.self, sort: [SortDescriptor(\.path)]).map(\.depth) == [0, 1])
let first = try other.all(Ledgers.V1.Entry.self, sort: [SortDescriptor(\.amount)]).first
check(first?.attachments.first?.mime.rawValue == "application/pdf" && first?.recurrence?.unit == .month)
let repository = LedgerRepository<Ledgers.V1.Payee>(modelContainer: context.container)
let payees = try await repository.list(sortedBy: [SortDescriptor(\.name)])
check(payees.count == 3)
