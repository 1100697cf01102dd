// swift-format-ignore-file
import Instar

try makeStore(NotebookSchemaV1.self) { context in
  context.insert(NotebookSchemaV1.Notebook(title: "Old", pages: [.init(number: 1, text: "first")]))
}

let container = try makeContainer(CurrentNotebookSchema.self)
let context = ModelContext(container)
let notebook = Notebook(title: "Field notes", pages: [Page(number: 1, body: "Rain"), Page(number: 2, body: "Sun")])
context.insert(notebook)
try context.save()

let other = ModelContext(container)
let found = try other.fetch(FetchDescriptor<Notebook>()).first
check(found?.pages.count == 2)
check(found?.createdAt == .distantPast)
check(found?.pages.allSatisfy { $0.notebook === found } == true)
