import InstarSchema
import Testing

@Suite("Adopting a store by its structure")
struct StructureFitTests {
  private typealias Index = StoreStructure.Index

  private func structure(
    _ tables: [String: [String]], indexes: [Index] = []
  ) -> StoreStructure {
    StoreStructure(
      tables: tables.map { table, columns in
        .init(
          name: table,
          columns: columns.map { column in
            let parts = column.split(separator: " ").map(String.init)
            return .init(name: parts[0], type: parts.count > 1 ? parts[1] : "TEXT")
          })
      }, indexes: indexes)
  }

  @Test("an equal structure is exact")
  func exact() {
    let version = structure(["note": ["id", "text"]])
    let fit = StructureFit(of: version, to: version)
    #expect(fit.isExact && fit.lacksNothing)
    #expect(fit.consequences(in: version) == [])
  }

  @Test(
    "a column without a type is one that a version declares as BLOB",
    arguments: [StoreFormat.coredata, .plain])
  func untyped(format: StoreFormat) {
    func structure(_ type: String) -> StoreStructure {
      StoreStructure(
        tables: [.init(name: "item", columns: [.init(name: "data", type: type)])], indexes: [])
    }
    let store = structure("")
    #expect(StructureFit(of: store, to: structure("BLOB")).isExact)
    #expect(
      store.described(asIn: structure("BLOB"), among: [structure("BLOB")], format: format)
        == structure("BLOB"))
    #expect(
      StructureFit(of: store, to: structure("VARCHAR")).obstacles
        == ["column item.data is declared without a type, not VARCHAR"])
    #expect(
      store.differences(from: structure("VARCHAR"))
        == ["column item.data is declared without a type, not VARCHAR"])
  }

  @Test("additional tables, columns and indexes stay, and a missing index is created")
  func additions() {
    let version = structure(
      ["note": ["id"]], indexes: [Index(name: "a", table: "note", isUnique: false, columns: ["id"])]
    )
    let store = structure(
      ["note": ["id", "rank"], "extra": ["x"]],
      indexes: [Index(name: "b", table: "note", isUnique: false, columns: ["rank"])])
    let fit = StructureFit(of: store, to: version)
    #expect(fit.obstacles == [])
    #expect(!fit.isExact && !fit.lacksNothing)
    #expect(
      fit.consequences(in: version) == [
        "table extra is not expected; Instar keeps it",
        "column note.rank is not expected; Instar keeps it",
        "index b is not expected; Instar keeps it", "index a is missing; Instar creates it",
      ])
    #expect(version.adding(fit.additions).tables == store.tables)
  }

  @Test("what the version needs and the store lacks prevents the adoption")
  func obstacles() {
    let version = structure(
      ["note": ["id INTEGER", "text"], "tag": ["id"]],
      indexes: [
        Index(name: "a", table: "note", isUnique: true, columns: ["id"]),
        Index(name: "b", table: "note", isUnique: false, columns: ["id"]),
      ])
    let store = structure(
      ["note": ["id TEXT"]],
      indexes: [Index(name: "b", table: "note", isUnique: true, columns: ["id"])])
    #expect(
      StructureFit(of: store, to: version).obstacles == [
        "table tag is missing", "column note.id is declared TEXT, not INTEGER",
        "column note.text is missing", "unique index a is missing, so values may repeat",
        "index b has a different definition",
      ])
  }
}
