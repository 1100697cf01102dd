import Testing

@testable import InstarSchema

@Suite("Folders of paths")
struct FoldersTests {
  @Test("a path is below the folders above it, and not below itself")
  func below() {
    #expect("/srv/a/b".isBelow("/srv") && "/srv".isBelow("/"))
    #expect(!"/srv".isBelow("/srv") && !"/srvb".isBelow("/srv") && !"/".isBelow("/"))
  }

  @Test(
    "a path has a folder and a last name, by its bytes",
    arguments: [
      ("/srv/a.store", "/srv", "a.store", "/srv/b"),
      ("/srv/a.store/", "/srv", "a.store", "/srv/b"),
      ("/a.store", "/", "a.store", "/b"),
      ("srv//a.store", "srv", "a.store", "srv//b"),
      ("a.store", ".", "a.store", "b"),
      ("/srv/\u{301}a", "/srv", "\u{301}a", "/srv/b"),
      ("//", "/", "", "//b"),
      ("", ".", "", "b"),
    ])
  func parts(path: String, folder: String, name: String, sibling: String) {
    #expect(path.parentFolder == folder)
    #expect(path.lastName == name)
    #expect(path.sibling("b") == sibling)
  }
}
