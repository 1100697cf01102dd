// Compiled with: Sources/Library/Library.swift
import Instar

@main
enum FromSwiftDataToInstar {
  static func main() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: LibrarySchemaV1.self),
      configurations: ModelConfiguration(url: URL(filePath: "library.store")))
    let context = ModelContext(container)
    if CommandLine.arguments.dropFirst() == ["check"] {
      let titles = try booksWithoutShelf(in: container).map(\.title)
      precondition(titles == ["Emma"])
    } else {
      context.insert(Book(isbn: "1", title: "Emma"))
      try context.save()
    }
    try container.close()
  }
}
