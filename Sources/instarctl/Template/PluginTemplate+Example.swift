import InstarSchema

extension PluginTemplate {
  /// A plugin with two versions of a model to begin with.
  static func example(name: String, buildFolder: String?) -> PluginTemplate {
    let (first, second) = ("\(name)V1", "\(name)V2")
    return PluginTemplate(
      name: name,
      versions: [
        Version(
          typeName: first, number: Schema.Version(1, 0, 0),
          source: """
            import Instar

            /// The models of version 1.0.0. Never change a version that was released.
            enum \(first): VersionedSchema {
              static let versionIdentifier = Schema.Version(1, 0, 0)
              static var models: [any PersistentModel.Type] { [Item.self] }

              @Model final class Item {
                @Attribute(.unique) var uid: String
                var title: String

                init(uid: String, title: String) {
                  self.uid = uid
                  self.title = title
                }
              }
            }

            """),
        Version(
          typeName: second, number: Schema.Version(2, 0, 0),
          source: """
            import Instar

            /// The models of version 2.0.0: `title` is called `name`, and `words` is new.
            enum \(second): VersionedSchema {
              static let versionIdentifier = Schema.Version(2, 0, 0)
              static var models: [any PersistentModel.Type] { [Item.self] }

              @Model final class Item {
                @Attribute(.unique) var uid: String
                /// Without the original name, the old values would be lost.
                @Attribute(originalName: "title") var name: String
                var words: Int = 0

                init(uid: String, name: String) {
                  self.uid = uid
                  self.name = name
                }
              }
            }

            """),
      ],
      stages: ["countWords"],
      stageDeclarations: """
        /// Renames `title`, adds `words`, and computes it for each row.
        static let countWords = MigrationStage.custom(
          fromVersion: \(first).self, toVersion: \(second).self, willMigrate: nil,
          didMigrate: { context in
            // One batch at a time is in memory, however many rows there are.
            try context.enumerate(FetchDescriptor<\(second).Item>()) { item in
              item.words = item.name.split(separator: " ").count
            }
          })
        """,
      exampleTests: """
        @Test("titles keep their text, and their words are counted")
        func words() throws {
          let store = try test.store(at: \(first).self) { context in
            context.insert(\(first).Item(uid: "1", title: "Milk and bread"))
            context.insert(\(first).Item(uid: "2", title: ""))
          }
          try store.migrate()
          let items = try store.read(\(second).self) { context in
            try context.fetch(FetchDescriptor<\(second).Item>(sortBy: [SortDescriptor(\\.uid)]))
              .map { "\\($0.name): \\($0.words)" }
          }
          #expect(items == ["Milk and bread: 3", ": 0"])
          try store.expectNoChange(of: \(second).Item.self)
        }
        """,
      sample: """
        for (number, title) in ["Milk and bread", "Call Zoë", "Return the books", "日本語"].enumerated() {
          context.insert(\(first).Item(uid: "item-\\(number + 1)", title: title))
        }
        """,
      exampleChange:
        "The stage from 1.0.0 to 2.0.0 renames `Item.title` to `name`, adds `Item.words`, and counts the words.",
      buildFolder: buildFolder)
  }
}
