import InstarSchema
import Testing

@Suite("What a Swift type reads")
struct ValueShapeTests {
  private static let word = ValueShape.named(type: "String")
  private static let number = ValueShape.named(type: "Int")
  private static func cases(_ values: String...) -> ValueShape {
    .rawValues(of: values.map { .text($0) })
  }

  private static func map(_ key: ValueShape, _ value: ValueShape) -> ValueShape {
    .map(keys: key, values: value)
  }

  @Test(
    "a type certainly reads equal types, wider integers, further cases, and optional values or fields",
    arguments: [
      (word, word, true), (word, number, false), (.optional(of: word), word, true),
      (word, .optional(of: word), false), (cases("a", "b"), cases("a"), true),
      (cases("a"), cases("a", "b"), false), (cases("a"), word, false),
      (.list(of: cases("1", "2")), .list(of: cases("1")), true),
      (map(word, number), map(word, word), false), (.list(of: word), map(word, word), false),
      (map(number, word), map(word, word), false), (map(word, word), map(word, word), true),
      (number, .named(type: "Int16"), true), (.named(type: "Int16"), number, false),
      (.named(type: "UInt16"), .named(type: "Int8"), false),
      (.named(type: "Int16"), .named(type: "UInt16"), false),
      (.named(type: "Int16"), .named(type: "UInt8"), true),
      (.cases(names: ["a"]), cases("a"), false),
      (.fields(of: ["a": word]), .fields(of: ["a": word, "b": number]), true),
      (.fields(of: ["a": word, "b": number]), .fields(of: ["a": word]), false),
      (.fields(of: ["a": word, "b": .optional(of: number)]), .fields(of: ["a": word]), true),
    ] as [(ValueShape, ValueShape, Bool)])
  func reads(new: ValueShape, old: ValueShape, isCertain: Bool) {
    #expect(new.reads(old) == isCertain)
  }

  @Test("a shape is shown in Swift's own notation")
  func text() {
    let shape = ValueShape.fields(of: [
      "tags": .list(of: Self.word), "counts": Self.map(Self.word, .optional(of: Self.number)),
      "kind": Self.cases("a", "b"),
    ])
    #expect(shape.text == "{counts: [String: Int?], kind: 'a' | 'b', tags: [String]}")
    #expect(Self.map(Self.number, Self.word).text == "[Int: String]")
    let numbers = ValueShape.rawValues(of: (10...34).map { .integer($0) })
    #expect(numbers.text.hasSuffix("29 | 5 more"))
  }

  @Test("what a type reads is the same for an optional property that becomes required")
  func required() {
    let note = Schema.Entity(
      name: "Note", attributes: [Schema.Attribute(name: "kind", type: .string)])
    let difference = SchemaDifference(
      from: Schema(entities: [note], version: Schema.Version(1, 0, 0)),
      to: Schema(entities: [note], version: Schema.Version(2, 0, 0)))
    let changes = difference.readingChanges(
      from: ["Note.kind": .optional(of: Self.cases("a"))], to: ["Note.kind": Self.cases("a")])
    #expect(changes.isEmpty)
  }

  @Test("what a type reads differs only for properties whose values stay as they are")
  func changes() {
    func schema(_ version: Int, _ type: Schema.AttributeType, name: String, from: String? = nil)
      -> Schema
    {
      Schema(
        entities: [
          Schema.Entity(
            name: "Note",
            attributes: [Schema.Attribute(name: name, originalName: from, type: type)])
        ], version: Schema.Version(version, 0, 0))
    }
    let first = schema(1, .string, name: "kind")
    let renamed = SchemaDifference(
      from: first, to: schema(2, .string, name: "state", from: "kind"))
    let changes = renamed.readingChanges(
      from: ["Note.kind": Self.cases("a")], to: ["Note.state": Self.cases("b")])
    #expect(changes.map(\.sentence) == ["reads the values of Note.state as 'b' instead of 'a'"])
    let converted = SchemaDifference(from: first, to: schema(2, .int64, name: "kind"))
    #expect(
      converted.readingChanges(
        from: ["Note.kind": Self.cases("a")], to: ["Note.kind": .rawValues(of: [.integer(1)])]
      ).isEmpty)
  }
}
