import InstarSchema
import InstarSource
import Testing

@Suite("names in source")
struct SwiftNameTests {
  @Test(
    "a name of any column becomes one of Swift",
    arguments: [
      ("folder_id", "folderId"), ("CUSTOMER_ID", "customerId"), ("Folder Name", "folderName"),
      ("2nd", "_2nd"), ("größe", "größe"), ("", "_property"), ("---", "_property"),
      ("createdAt", "createdAt"),
    ])
  func properties(_ text: String, _ name: String) {
    #expect(SwiftName.property(text) == name)
    #expect(SwiftName.isIdentifier(name))
  }

  @Test("a name of any table becomes one of a type")
  func types() {
    #expect(SwiftName.type("folder_tags") == "FolderTags")
    #expect(SwiftName.type("App-1_0_0") == "App100")
    #expect(SwiftName.type("default") == "Default")
  }

  @Test("reserved words are in backticks")
  func reserved() {
    #expect(SwiftName.declared("class") == "`class`")
    #expect(SwiftName.declared("name") == "name")
  }

  @Test("versions are named as people name them")
  func versions() {
    #expect(VersionName.type("Notes", Schema.Version(1, 0, 0)) == "NotesV1")
    #expect(VersionName.type("Notes", Schema.Version(1, 2, 0)) == "NotesV1_2")
    #expect(VersionName.type("Notes", Schema.Version(1, 0, 3)) == "NotesV1_0_3")
  }
}
