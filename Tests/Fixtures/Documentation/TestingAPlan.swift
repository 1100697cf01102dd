// Compiled with: Sources/Inbox.swift Tests/InboxTests.swift
import Instar

@main
enum TestingAPlan {
  static func main() throws {
    let store = URL(filePath: "copy.store")
    if CommandLine.arguments.dropFirst() == ["check"] {
      let container = try ModelContainer(
        for: Schema(versionedSchema: InboxV2.self), configurations: ModelConfiguration(url: store))
      let messages = try ModelContext(container).fetch(FetchDescriptor<InboxV2.Message>())
      precondition(messages.map(\.isUrgent) == [true])
      try container.close()
    } else {
      try testUrgentMessagesAreMarked()
      try testOldMessagesAreKept()
      try testAllVersions()
      let container = try ModelContainer(
        for: Schema(versionedSchema: InboxV1.self), configurations: ModelConfiguration(url: store))
      let context = ModelContext(container)
      context.insert(InboxV1.Message(subject: "! now"))
      try context.save()
      try container.close()
    }
  }
}
