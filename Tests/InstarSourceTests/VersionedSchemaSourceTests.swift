import InstarSchema
import InstarSource
import Testing

@Suite("the source of a version")
struct VersionedSchemaSourceTests {
  private func source(_ entities: [Schema.Entity]) -> VersionedSchemaSource {
    VersionedSchemaSource(
      Schema(entities: entities, version: Schema.Version(1, 2, 0)), name: "ShelfSchemaV1_2",
      comment: "The models of 'shelf.store'.")
  }

  @Test("attributes, relationships, defaults and constraints are written as people write them")
  func wholeSource() {
    let source = source([
      Schema.Entity(
        name: "Book",
        attributes: [
          Schema.Attribute(name: "isbn", type: .string, options: [.unique]),
          Schema.Attribute(
            name: "pages", originalName: "pageCount", type: .int32, defaultValue: .integer(0)),
          Schema.Attribute(name: "class", type: .string, isOptional: true),
        ],
        relationships: [
          Schema.Relationship(
            name: "author", destination: "Person", inverseName: "books", isOptional: false,
            isToOneRelationship: true)
        ],
        uniquenessConstraints: [["isbn"], ["class", "pages"]], indices: [["pages"]]),
      Schema.Entity(
        name: "Person",
        attributes: [
          Schema.Attribute(name: "name", type: .string, defaultValue: .text("a \"b\"\n"))
        ],
        relationships: [
          Schema.Relationship(
            name: "books", destination: "Book", inverseName: "author", deleteRule: .cascade,
            isToOneRelationship: false)
        ]),
    ])
    #expect(source.notes.isEmpty)
    #expect(
      source.text == #"""
        import Instar

        /// The models of 'shelf.store'.
        enum ShelfSchemaV1_2: VersionedSchema {
          static var versionIdentifier: Schema.Version { Schema.Version(1, 2, 0) }
          static var models: [any PersistentModel.Type] {
            [Book.self, Person.self]
          }

          @Model
          final class Book {
            #Unique<Book>([\.`class`, \.pages])

            #Index<Book>([\.pages])

            @Attribute(.unique) var isbn: String
            @Attribute(originalName: "pageCount") var pages: Int32 = 0
            var `class`: String?
            @Relationship(inverse: \Person.books) var author: Person

            init(isbn: String, pages: Int32 = 0, `class`: String? = nil, author: Person) {
              self.isbn = isbn
              self.pages = pages
              self.`class` = `class`
              self.author = author
            }
          }

          @Model
          final class Person {
            var name: String = "a \"b\"\n"
            @Relationship(deleteRule: .cascade) var books: [Book] = []

            init(name: String = "a \"b\"\n") {
              self.name = name
            }
          }
        }

        """#)
  }

  @Test("a type that a model hides has its module in source")
  func hiddenTypes() {
    let source = source([
      Schema.Entity(
        name: "Data",
        attributes: [
          Schema.Attribute(name: "bytes", type: .data),
          Schema.Attribute(name: "text", type: .string),
        ]),
      Schema.Entity(
        name: "String", attributes: [Schema.Attribute(name: "date", type: .date, isOptional: true)]),
      Schema.Entity(
        name: "Schema", attributes: [Schema.Attribute(name: "id", type: .uuid, options: [.unique])]),
    ])
    #expect(source.text.contains("var bytes: Foundation.Data\n"))
    #expect(source.text.contains("var text: Swift.String\n"))
    #expect(source.text.contains("var date: Date?\n"))
    #expect(
      source.text.contains(
        "versionIdentifier: InstarSchema.Schema.Version { InstarSchema.Schema.Version(1, 2, 0) }"))
  }

  @Test("composites become types of the class: structs of their fields, enums by their cases")
  func composites() {
    var entity = Schema.Entity(
      name: "Note",
      attributes: [
        Schema.Attribute(name: "author.name", type: .string, isOptional: true),
        Schema.Attribute(name: "author.links", type: .data, isOptional: true),
        Schema.Attribute(name: "kind.draft", type: .string, isOptional: true),
        Schema.Attribute(name: "kind.default", type: .string, isOptional: true),
      ])
    entity.attributes[0].declaration.isRequiredField = true
    for column in 2...3 {
      entity.attributes[column].declaration.isEnumeration = true
      entity.attributes[column].declaration.isRequiredComposite = true
    }
    let source = VersionedSchemaSource(
      Schema(entities: [entity], version: Schema.Version(1, 0, 0)), name: "V1", comment: "Notes.",
      comments: ["Note.author.links": "Archived values of type [String]."])
    #expect(
      source.text.contains(
        """
            struct Author: Codable, Hashable {
              var name: String
              // Archived values of type [String].
              var links: Data?
            }

            enum Kind: Codable {
              case draft
              case `default`
            }

            var author: Author?
            var kind: Kind

            init(author: Author? = nil, kind: Kind) {
        """))
  }

  @Test(
    "one side of a pair names the other; relationships without inverse say so where they would be paired"
  )
  func inverses() {
    func many(_ name: String, to: String, inverse: String? = nil) -> Schema.Relationship {
      Schema.Relationship(
        name: name, destination: to, inverseName: inverse, isToOneRelationship: false)
    }
    let source = source([
      Schema.Entity(
        name: "A",
        relationships: [many("bs", to: "B", inverse: "as"), many("others", to: "B")]),
      Schema.Entity(
        name: "B",
        relationships: [many("as", to: "A", inverse: "bs"), many("strangers", to: "A")]),
      Schema.Entity(name: "C", relationships: [many("bs", to: "B"), many("ds", to: "D")]),
      Schema.Entity(
        name: "D",
        relationships: [
          Schema.Relationship(name: "c", destination: "C", isToOneRelationship: true)
        ]),
    ])
    #expect(source.text.contains("@Relationship(inverse: \\B.`as`) var bs: [B] = []"))
    #expect(source.text.contains("    var `as`: [A] = []"))
    #expect(source.text.contains("    var others: [B] = []"))
    #expect(source.text.contains("    var strangers: [A] = []"))
    #expect(
      source.text.contains(
        "class C {\n    var bs: [B] = []\n    @Relationship(.withoutInverse) var ds: [D] = []"))
    #expect(source.text.contains("@Relationship(.withoutInverse) var c: C?"))
  }

  @Test("names from a hostile store cannot write source of their own")
  func hostileNames() {
    let name = "X {}\n}\nimport Evil // \u{2028}"
    let entity = Schema.Entity(
      name: name, attributes: [Schema.Attribute(name: "a\nb", type: .string, isOptional: true)],
      uniquenessConstraints: [["a\nb"]])
    let source = VersionedSchemaSource(
      Schema(entities: [entity], version: Schema.Version(1, 0, 0)), name: "V1",
      comment: "Of '\(name)'.", notes: [name], comments: ["\(name).a\nb": name])
    let code = source.text.split(whereSeparator: \.isNewline).filter {
      !$0.drop { $0 == " " }.hasPrefix("//")
    }
    #expect(!code.contains { $0.hasPrefix("import Evil") || $0.hasPrefix("}") && $0 != "}" })
    #expect(code.contains("    @Attribute(.unique) var aB: String?"))
    #expect(source.notes.count == 3)
  }

  @Test("a line that is too long is broken")
  func longLines() {
    let attributes = (1...12).map {
      Schema.Attribute(name: "aRatherLongName\($0)", type: .string)
    }
    let lines = source([Schema.Entity(name: "Wide", attributes: attributes)]).text.split(
      separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 100 })
    #expect(lines.contains("      aRatherLongName12: String"))
  }

  @Test("a named index has directions and a condition; one that source cannot express is a note")
  func namedIndexes() {
    var car = Schema.Entity(
      name: "Car",
      attributes: [
        Schema.Attribute(name: "maker", type: .string),
        Schema.Attribute(name: "year", type: .int64),
      ])
    car.fetchIndexes = [
      Schema.FetchIndex(
        name: "byYear", elements: [.init("year", isAscending: false), .init("maker")]),
      Schema.FetchIndex(
        name: "old", elements: [.init("maker")], condition: #"ZYEAR < 1950 AND ZMAKER <> "a""#),
      Schema.FetchIndex(
        name: "unsaid", elements: [.init("maker")], partialPredicate: "year > 2000"),
    ]
    let source = self.source([car])
    #expect(
      source.text.contains(
        #"""
            #Index<Car>(
              .named("byYear", [.descending(\.year), .ascending(\.maker)]),
              .named("old", [\.maker], where: "ZYEAR < 1950 AND ZMAKER <> \"a\"")
            )
        """#))
    #expect(
      source.notes == [
        "index 'unsaid' of Car is left out: the store does not say in SQL which rows it covers"
      ])
  }
}
