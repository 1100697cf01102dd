import InstarMacroExpansion
import SwiftParser
import SwiftSyntax
import Testing

@Suite("A source with its models expanded")
struct SourceExpansionTests {
  private static let notes = #"""
    import Instar

    /// Version 1.
    public enum NotesSchemaV1: VersionedSchema {
      @Table("note") @Model(originalName: "Memo")
      public final class Note: Codable {
        #Unique<Note>([\.uid])
        @Attribute(.unique) public var uid: String  // a comment
        @Relationship(
          deleteRule: .cascade,
          inverse: \Tag.note
        )
        var tags: [Tag] = [
          // none
        ]
        var count = -1
        var created = Date.now
        var kind = Kind.plain
        @Transient var isOpen = false
        var shout: String { uid.uppercased() }

        init(uid: String) {
          self.uid = uid
        }
        // the end
      }
      @Model final class Tag {
        var note: Note?
        init() {}
      }
    }
    """#

  private func expand(_ sources: String...) -> [String?] {
    SourceExpansion.expansions(of: sources.map { Array($0.utf8) }).map { bytes in
      bytes.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  @Test("an expanded source has no macros, but the members that these stand for")
  func members() throws {
    let expanded = try #require(expand(Self.notes)[0])
    for gone in ["@Model", "@Table", "@Attribute", "@Relationship", "@Transient var", "#Unique"] {
      #expect(!expanded.contains(gone))
    }
    for written in [
      "_modelStorage.value(at: Note._$firstSlot + 1)",
      "_$storage.setValue(newValue, at: 0, of: self)",
      #"table: InstarSchema.Schema.Table("note")"#, #"originalName: "Memo""#,
      #"uniqueness: [[\.uid]]"#, "var count\u{C}: Swift.Int = -1",
      "var created\u{C}: Date = Date.now",
      "nonisolated extension NotesSchemaV1.Note: InstarModel.PersistentModel {}",
      "nonisolated extension NotesSchemaV1.Tag: InstarModel.PersistentModel {}",
    ] {
      #expect(expanded.contains(written), "\(written)")
    }
    // Only the compiler knows the type of this initial value.
    #expect(expanded.contains("@InstarModel._PersistedProperty(4, of: \"Note\")\n    var kind"))
    #expect(!Parser.parse(source: expanded).hasError)
  }

  @Test(
    "a property has a key path only if the code may name it in one",
    arguments: [
      ("", false), ("let title = note.title; let heading = note.heading", false),
      ("SortDescriptor(\\V1.Note.title)", true), ("notes.map(\\.heading.title.count)", true),
      ("#Predicate<V1.Note> { $0.title == text }", true),
      ("#Predicate<V1.Note>({ $0.`title` == text })", true),
      ("#if NEVER\nfunc f() { sort(\\.title) }\n#endif", true),
      ("@Relationship(originalName: \"title\") var tags: [Tag]", false),
      ("@dynamicMemberLookup struct Row {}", true), ("use(update.updatedAttributes)", true),
      ("use(relationship.keypath)", true), ("use(relationship.inverseKeyPath)", true),
    ])
  func keyPaths(code: String, isNeeded: Bool) throws {
    let models = """
      enum V1 {
        @Model final class Note {
          var title: String
          var count = 0
          var kind = Kind.plain
          var text: String!
          init() { title = "" }
        }
      }
      """
    let expanded = try #require(expand(models, code)[0])
    #expect(
      expanded.contains(
        isNeeded ? #"("title", \Note.title)"# : #"("title", (String).self)"#))
    #expect(
      expanded.contains(#"("count", (Swift.Int).self, constant: 0)"#)
        || code.contains("@dynamic") || code.contains("count") || code.contains("updated")
        || code.contains("relationship."))
    // Their types are not known, or not written as in an expression.
    #expect(expanded.contains(#"("kind", \Note.kind"#))
    #expect(expanded.contains(#"("text", \Note.text)"#))
  }

  @Test(
    "a property has a setter only if the code may assign it",
    arguments: [
      ("", "", false), ("", "func f(note: Note) { _ = note.title2 }", false),
      ("", "func f(note: Note) { note.title = \"\" }", true),
      ("", "func f(note: Note) { note.title += \"\" }", true),
      ("", "func f(note: Note) { note.title.append(\"a\") }", true),
      ("", "func f() { _ = \\Note.title }", true),
      ("", "func f(u: DefaultHistoryUpdate<Note>) { _ = u.updatedAttributes }", true),
      ("", "protocol Titled: AnyObject { var title: String { get set } }", true),
      ("", "protocol Titled: AnyObject {}\nextension Note: Titled {}", false),
      ("func clear() { title = \"\" }", "", true),
      ("convenience init() { self.init(title: \"\"); title = \"\" }", "", true),
      ("init(a: String) { if a.isEmpty { title = a } else { title = \"\" } }", "", true),
      ("init(text: String) { title = text }", "", false),
      ("init(text: String) { title = text; title = text }", "", true),
      ("", "struct Wrapper { init(note: Note) { self.title = \"\" } }", true),
      ("init(note: Note) { title = note.title }", "", true),
      ("init(`title`: String, b: Int = 1) { self.title = `title` + \"a\" }", "", false),
    ])
  func setters(member: String, code: String, hasSetter: Bool) throws {
    try expectSetter(hasSetter, of: "var title: String", member, code)
  }

  @Test(
    "a property that has a value has a setter when an initializer assigns it",
    arguments: [
      "var title: String = \"\"", "var title = \"\"", "var title: String?",
      "private(set) var title: String", "public internal(set) var title: String",
    ])
  func settersOfInitialValues(property: String) throws {
    try expectSetter(true, of: property)
  }

  private func expectSetter(
    _ hasSetter: Bool, of property: String, _ member: String = "", _ code: String = ""
  ) throws {
    let model = """
      @Model final class Note {
        \(property)
        init(title: String) { self.title = title }
        \(member)
      }
      """
    let expanded = try #require(expand(model, code)[0])
    #expect(expanded.contains("setValue(") == hasSetter)
    let inheritable = model.replacing("final class", with: "class")
    #expect(try #require(expand(inheritable, code)[0]).contains("setValue("))
  }

  @Test(
    "a model has no initializer for rows where objects have nothing in memory but their storage",
    arguments: [
      ("var a: Int\n  init() {}", true),
      ("var a: Int\n  static let b = 1\n  var c: Int { 2 }\n  init() {}\n  func f() {}", true),
      ("#Unique<Note>([\\.a])\n  var a: Int = 1\n  init() {}\n  deinit {}", true),
      ("var a = f()\n  init() {}", true),
      ("var a: Int\n  @Transient var b = 1\n  init() {}", false),
      ("var a: Int\n  lazy var b = 1\n  init() {}", false),
      ("@Attribute(.unique) var a: Int\n  @objc init() {}\n  @inline(never) func f() {}", true),
      ("var a: Int\n  init() {}\n  @Memo func f() {}", false),
      ("var a: Int\n  init() {}\n  @memo(1) func f() {}", false),
      ("var a: Int\n  @Library.memo init() {}", false),
      ("var a: Int\n  #if DEBUG\n  func f() {}\n  #endif\n  init() {}", false),
      ("var a: Int = 1\n  convenience init(b: Int) { self.init() }", false),
    ])
  func storageOnly(members: String, isStorageOnly: Bool) throws {
    let expanded = try #require(expand("@Model final class Note {\n  \(members)\n}")[0])
    #expect(expanded.contains("init(_modelStorage") != isStorageOnly)
    for inheritable in ["class Note", "final class Note: Codable"] {
      let expanded = try #require(expand("@Model \(inheritable) {\n  \(members)\n}")[0])
      #expect(expanded.contains("init(_modelStorage"))
    }
  }

  @Test("each token of the author's is at its line and column", arguments: ["\n", "\r\n"])
  func positions(newline: String) throws {
    let source = "\u{FEFF}" + Self.notes.replacing("\n", with: newline)
    let expanded = try #require(expand(source)[0])
    let lines = expanded.split(separator: newline, omittingEmptySubsequences: false).map {
      Array($0.utf8)
    }
    #expect(lines.count == source.split(separator: newline, omittingEmptySubsequences: false).count)
    let tree = Parser.parse(source: source)
    let converter = SourceLocationConverter(fileName: "", tree: tree)
    var moved: [String] = []
    for token in tree.tokens(viewMode: .sourceAccurate)
    where token.tokenKind != .rightBrace && !token.isOfMacro {
      let place = token.startLocation(converter: converter)
      let rest = lines[place.line - 1].dropFirst(place.column - 1)
      if !rest.starts(with: token.text.utf8) { moved.append(token.text) }
    }
    // After a type that the author left out. The first `Date` of `: Date = Date` is where the author's was.
    #expect(moved == ["=", "-", "1", "=", ".", "now"])
  }

  @Test("an expanded source marks each line that differs")
  func marks() throws {
    let expanded = try #require(expand(Self.notes)[0])
    let pairs = zip(Self.notes.split(separator: "\n"), expanded.split(separator: "\n"))
    for (line, other) in pairs where line != other {
      #expect(other.contains("\u{C}"))
    }
    #expect(pairs.contains { $0 == $1 })
  }

  @Test(
    "a source stays as it is where the macros have anything to report, or syntax does not show enough",
    arguments: [
      "@Model final class Note { var title: String }",
      "@Model final class Note<T> {\n  var title: String\n  init() {}\n}",
      "@Model struct Note {\n  var title: String\n}",
      "@Model final class Note {\n  let id: Int\n  init() { id = 1 }\n}",
      "@Model final class Note {\n  var title: String { didSet {} }\n  init() {}\n}",
      "@Model final class Note {\n  @Attribute(.uniqe) var title: String\n  init() {}\n}",
      "@Model final class Note {\n  @Attribute var title: String { \"\" }\n  init() {}\n}",
      "@Model final class Note {\n  @Transient func f() {}\n  init() {}\n}",
      "@Model final class Note {\n  @Wrapped var title: String\n  init() {}\n}",
      "@Model final class Note {\n  @wrapped var title: String\n  init() {}\n}",
      "@Model final class Note {\n  var line: Int = #line\n  init() {}\n}",
      "@Model final class Note {\n  var text: String = \"\"\"\n    a\n    \"\"\"\n  init() {}\n}",
      "@Model final class Note {\n  var a: Int = 1; var b: Int = 2\n  init() {}\n}",
      "@Model final class Note {\n  #if DEBUG\n  @Transient var a: Int = 1\n  #endif\n  init() {}\n}",
      "@Model final class Note {\n  #Index<Note>(.rtree([\\.a]))\n  var a: Int\n  init() {}\n}",
      "@Model final class Note {\n  #Unique<Note>([\\.a], .named(\"x\", [\\.a]))\n  var a: Int\n  init() {}\n}",
      "@Model final class Note {\n  #Unique<Note>(on: [\\.a])\n  var a: Int\n  init() {}\n}",
      "@Model final class Note {\n  #if DEBUG\n  func f() {}\n  #endif\n  var a = f()\n  init() {}\n}",
      "class `Model` {}\n@Model final class Note {\n  var a: Int\n  init() {}\n}",
      "@Model(name: \"Memo\") final class Note {\n  var a: Int\n  init() {}\n}",
      "@Other.Model final class Note {\n  var a: Int\n  init() {}\n}",
      "@Observable @Model final class Note {\n  var a: Int\n  init() {}\n}",
      "@Model final class Note: Unknown {\n  var a: Int\n  init() {}\n}",
      "@Model final class Note: PersistentModel {\n  var a: Int\n  init() {}\n}",
      "@Model final class Note {\n  var a: Int\n  init() {}\n}\nextension Note: PersistentModel {}",
      "protocol Base: PersistentModel {}\n@Model final class Note: Base {\n  var a: Int\n  init() {}\n}",
      "enum V1 {\n  @Model private final class Note {\n    var a: Int\n    init() {}\n  }\n}",
      "enum V1<T> {\n  @Model final class Note {\n    var a: Int\n    init() {}\n  }\n}",
      "enum V1 {\n  #if DEBUG\n  @Model final class Note {\n    var a: Int\n    init() {}\n  }\n  #endif\n}",
      "func f() {\n  @Model final class Note {\n    var a: Int\n    init() {}\n  }\n}",
      "struct Column {}\n@Model final class Note {\n  @Column var a: Int\n  init() {}\n}",
      "macro Model() = #externalMacro(module: \"A\", type: \"B\")\n@Model final class Note {\n  var a: Int\n  init() {}\n}",
      "@Model final class Note {\n  var a: Int\u{C}\n  init() {}\n}",
      "@Model final class Note {\n  var a: Int\n  init() {}\n",
    ])
  func unexpanded(source: String) {
    #expect(expand(source) == [nil])
  }

  @Test("models that inherit from a model of another file are expanded")
  func inheritance() throws {
    let country = """
      @Model final class Country: V1.Region, Comparable {
        var capital: String?
        init() { super.init(name: "") }
      }
      """
    #expect(expand(country) == [nil])
    let region = """
      enum V1 {
        @Model class Region {
          var name: String
          init(name: String) { self.name = name }
        }
      }
      typealias Region = V1.Region
      """
    let expanded = expand(country, region)
    #expect(expanded[0]?.contains("superclass: V1.Region.self") == true)
    #expect(expanded[0]?.contains("extension Country") == false)
    #expect(expanded[1]?.contains("extension V1.Region: InstarModel.PersistentModel {}") == true)
    // A name of several things decides nothing.
    #expect(expand(country, region, "protocol Region {}")[0] == nil)
  }

  @Test("models are expanded although a generic parameter is named as a macro")
  func genericParameter() {
    let source = """
      actor Repository<Model: PersistentModel> {}
      @Model final class Note {
        var a: Int
        init() {}
      }
      """
    #expect(expand(source)[0]?.contains("@Model") == false)
  }

  @Test(
    "a source stays as it is if both sides of a relationship name the other, which the compiler refuses"
  )
  func inverses() {
    let source = #"""
      enum V1 {
        @Model final class Shelf {
          @Relationship(inverse: \Book.shelf) var books: [Book] = []
          init() {}
        }
        @Model final class Book {
          var shelf: Shelf?
          init() {}
        }
      }
      enum V2 {
        @Model final class Shelf {
          var books: [Book] = []
          init() {}
        }
        @Model final class Book {
          @Relationship(inverse: \Shelf.books) var shelf: Shelf?
          init() {}
        }
      }
      """#
    #expect(expand(source)[0] != nil)
    let circular = source.replacing(
      "    var books", with: "    @Relationship(inverse: \\V2.Book.shelf?) var books")
    #expect(circular.contains("V2.Book"))
    #expect(expand(circular) == [nil])
    // The compiler knows what an alias stands for.
    let aliased =
      "typealias Volume = V1.Book\n" + source.replacing("\\Book.shelf", with: "\\Volume.shelf")
    #expect(expand(aliased) == [nil])
  }

  @Test("conditional models have conditional conformances")
  func conditions() throws {
    let source = """
      #if DEBUG
      @Model final class Note {
        var a: Int
        init() {}
      }
      #endif
      """
    let expanded = try #require(expand(source)[0]).split(separator: "\n")
    #expect(expanded[4].contains("extension Note: InstarModel.PersistentModel {}"))
    #expect(expanded[5] == "#endif")
  }
}

extension TokenSyntax {
  fileprivate var isOfMacro: Bool {
    sequence(first: Syntax(self), next: \.parent).contains {
      $0.is(AttributeSyntax.self) || $0.is(MacroExpansionDeclSyntax.self)
    }
  }
}
