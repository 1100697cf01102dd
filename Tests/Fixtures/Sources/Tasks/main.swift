// swift-format-ignore-file
import Instar

let list = TaskList(container: sharedContainer)
let project = Project(name: "House")
try list.add("Paint", to: project)
try list.add("Clean")
check(list.items.map(\.title) == ["Clean", "Paint"])
check(project.items.count == 1 && project.modelContext != nil)
let count = try await countInBackground(sharedContainer)
check(count == 2)
let id = list.items[0].persistentModelID
try await finish(id, in: sharedContainer)
let open = try ModelContext(sharedContainer).fetchCount(FetchDescriptor<TaskItem>(predicate: #Predicate { $0.isDone == false }))
check(open == 1)
check(list.items[1].priority == .normal && list.items[1].estimate == 1.5)
