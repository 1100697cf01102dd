import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarChange

@Suite("What a lightweight stage does to rows")
struct RowChangeTests {
  private static func note(
    _ version: Int, _ attributes: [String], unique: [[String]] = []
  ) -> Schema {
    Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: attributes.map {
            Schema.Attribute(name: $0, type: .string, isOptional: true)
          },
          uniquenessConstraints: unique)
      ], version: Schema.Version(version, 0, 0))
  }

  /// - Parameter hasHistory: Whether the store records the history of its changes.
  private func change(to new: Schema, hasHistory: Bool) throws -> RowChange {
    let versions = try [Self.note(1, ["title", "text"]), new].map {
      PlanVersion(schema: $0, layout: try $0.layout(), name: "V\($0.version)")
    }
    let stage = SchemaStage(
      from: versions[0], to: versions[1], kind: .lightweight, columnOrder: .asAdded,
      isImplicit: false)
    let (layout, queue) = (versions[0].layout, try DatabaseQueue())
    return try queue.write { db in
      let statements = layout.createStatements + (hasHistory ? layout.historyStatements : [])
      for statement in statements { try db.execute(sql: statement) }
      try CoreDataMetadata(newStoreFor: versions[0].schema).write(db)
      return try SchemaText(db).after([stage], rows: StoreFormat.coredata.bookkeepingStatements(db))
        .rows
    }
  }

  @Test("adding a property writes none, and updates the history of a store that has one")
  func addedProperty() throws {
    let new = Self.note(2, ["title", "text", "tone"])
    #expect(try change(to: new, hasHistory: false) == .none)
    #expect(try change(to: new, hasHistory: true) == .updatesBooks)
  }

  @Test("a uniqueness constraint keeps all values, and removing a property only drops its column")
  func others() throws {
    let unique = Self.note(2, ["title", "text"], unique: [["title"]])
    #expect(try change(to: unique, hasHistory: false) == .keepsValues)
    #expect(try change(to: Self.note(2, ["title"]), hasHistory: false) == .dropsColumn)
  }
}
