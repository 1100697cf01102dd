// swift-format-ignore-file
import Instar

let container = try makeContainer(LedgerSchema.self)
let context = ModelContext(container)
let account = Account(name: "Giro")
account.limits = [1.5, 2.5]
context.insert(account)
let food = Category(name: "Food")
context.insert(Entry(amount: Decimal(string: "12.50")!, account: account, category: Category(name: "Bread", parent: food)))
try context.save()

let other = ModelContext(container)
let entry = try other.fetch(FetchDescriptor<Entry>())[0]
check(entry.amount == Decimal(string: "12.5") && entry.account.name == "Giro" && entry.sequence == 7)
check(entry.account?.entries.first === entry && entry.account.limits == [1.5, 2.5])
check(entry.category?.parent?.children.first?.name == "Bread")
let large = FetchDescriptor<Entry>(predicate: #Predicate { $0.amount > 10 && $0.category?.parent?.name == "Food" })
check(try other.fetchCount(large) == 1)
