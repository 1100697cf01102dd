import Instar
import InstarEngine
import Testing

enum LoansV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Reader.self, Loan.self] }

  @Table("reader") @Model final class Reader {
    var id: Int
    init(id: Int) { self.id = id }
  }

  @Table("loan") @Model final class Loan {
    var id: Int
    var by: Int
    init(id: Int, by: Int) {
      self.id = id
      self.by = by
    }
  }
}

/// Loans reference their readers.
enum LoansV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Reader.self, Loan.self] }

  @Table("reader") @Model final class Reader {
    var id: Int
    @Relationship(inverse: \Loan.reader) var loans: [Loan] = []
    init(id: Int) { self.id = id }
  }

  @Table("loan") @Model final class Loan {
    var id: Int
    var by: Int
    var reader: Reader?
    init(id: Int, by: Int) {
      self.id = id
      self.by = by
    }
  }
}

@Suite("Stages on rows with any key")
struct StageRowKeyTests {
  private static let keys: [Int] =
    [.min, .min / 2 - 1, -1, 1, .max] + (0..<8).map { _ in .random(in: .min ... .max) }

  @Test("a stage links rows whose keys are any 64-bit numbers")
  func links() throws {
    let store = try MigratedStore()
    let keys = Set(Self.keys).subtracting([0])
    try store.make(
      LoansV1.self,
      keys.map { LoansV1.Reader(id: $0) } + keys.map { LoansV1.Loan(id: $0, by: $0) })
    Script.didMigrate = { context in
      // Nothing retains the readers of the first fetch, so the context has to forget them.
      _ = try context.fetch(FetchDescriptor<LoansV2.Reader>())
      let readers = try context.fetch(FetchDescriptor<LoansV2.Reader>())
      let readersByID = Dictionary(uniqueKeysWithValues: readers.map { ($0.id, $0) })
      try context.enumerate(FetchDescriptor<LoansV2.Loan>(), batchSize: 2) { loan in
        loan.reader = readersByID[loan.by]
      }
    }
    try store.migrate(LoansV1.self, LoansV2.self)
    let links = try store.read(
      "SELECT id || ' ' || reader_id FROM loan ORDER BY id")
    #expect(links == keys.sorted().map { "\($0) \($0)" })
  }
}
