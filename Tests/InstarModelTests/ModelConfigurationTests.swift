import Instar
import InstarTestSupport
import Testing

@Suite("Configurations of containers")
struct ModelConfigurationTests {
  @Test("what only Apple's platforms have is accepted, and the store stays local")
  func platformOptions() throws {
    let schema = Schema(versionedSchema: Library.self)
    let configurations = [
      ModelConfiguration(schema: schema, isStoredInMemoryOnly: true, cloudKitDatabase: .none),
      ModelConfiguration(
        "notes", schema: schema, isStoredInMemoryOnly: true, allowsSave: true,
        groupContainer: .identifier("group.example"), cloudKitDatabase: .private("iCloud.example")),
      ModelConfiguration(for: Library.Note.self, isStoredInMemoryOnly: true),
    ]
    for configuration in configurations {
      let container = try ModelContainer(for: schema, configurations: configuration)
      let context = ModelContext(container)
      context.insert(Library.Tag(name: "a"))
      try context.save()
    }
    #expect(configurations[1].cloudKitContainerIdentifier == "iCloud.example")
    #expect(configurations[1].groupAppContainerIdentifier == "group.example")
    let folder = try TemporaryFolder()
    let file = ModelConfiguration(
      url: URL(filePath: folder.path("a.store")), cloudKitDatabase: .automatic)
    #expect(file.cloudKitContainerIdentifier == nil)
  }

  @Test("several configurations, and one of another schema, are refused by name")
  func refused() throws {
    let schema = Schema(versionedSchema: Library.self)
    let memory = ModelConfiguration(isStoredInMemoryOnly: true)
    let several = #expect(throws: SwiftDataError.self) {
      try ModelContainer(for: schema, configurations: memory, ModelConfiguration("b"))
    }
    #expect(several.map { SwiftDataError.duplicateConfiguration ~= $0 } == true)
    #expect(several == SwiftDataError.loadIssueModelContainer)
    let stranger = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Library.Tag.self, Library.Note.self, Library.Folder.self,
        configurations: ModelConfiguration(for: Stranger.self, isStoredInMemoryOnly: true))
    }
    #expect(stranger?.description.contains("Stranger") == true)
    let long = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: schema,
        configurations: ModelConfiguration(
          url: URL(filePath: "/tmp/" + String(repeating: "a", count: 300))))
    }
    #expect(long.map { SwiftDataError.configurationFileNameTooLong ~= $0 } == true)
  }

  @Model
  final class Stranger {
    var name: String
    init(name: String) { self.name = name }
  }
}
