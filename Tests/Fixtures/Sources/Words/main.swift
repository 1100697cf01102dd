// swift-format-ignore-file
import Instar

let container = try makeContainer(WordsSchema.self)
let context = ModelContext(container)
let order = Order(id: 1)
order.orders = [Order(id: 2)]
order.größe = 2
context.insert(order)
context.insert(Group(in: "x"))
try context.save()

let other = ModelContext(container)
let all = try other.fetch(FetchDescriptor<Order>(sortBy: [SortDescriptor(\.id)]))
check(all.map(\.id) == [1, 2] && all[1].parent === all[0])
check(all[0].größe == 2 && all[0].名前 == "名" && all[0].`init` == 3 && all[0].z_pk == 11)
let matching = FetchDescriptor<Order>(predicate: #Predicate { $0.`where` == "w" && $0.größe > 1.8 && $0.rowid == 9 && $0.z_pk == 11 })
check(try other.fetchCount(matching) == 1)
check(try other.fetch(FetchDescriptor<Group>())[0].in == "x")
