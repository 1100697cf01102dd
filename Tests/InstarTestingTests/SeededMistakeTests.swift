import Foundation
import Instar
import InstarTesting
import Testing

/// Each plan has a mistake that app teams make. Each test shows what of the kit finds it.
@Suite("The test kit finds")
struct SeededMistakeTests {
  /// The error of the one thing that finds the mistake.
  private func mistake(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch {
      return "\(error)"
    }
  }

  private func shelf(_ test: MigrationTest) throws -> TestStore {
    try test.store(at: BooksV1.self) { context in
      let author = BooksV1.Author(name: "Ada")
      context.insert(author)
      for number in 1...3 {
        let book = BooksV1.Book(
          isbn: "\(number)", title: "Book", subtitle: number == 2 ? nil : "Part \(number)",
          pages: 300 * number)
        context.insert(book)
        book.author = author
      }
    }
  }

  @Test("the test kit finds a forgotten stage")
  func forgottenStage() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, RequiredPriceV2.self] }
      static var stages: [MigrationStage] { [] }
    }
    let found = mistake { try MigrationTest(Plan.self).expectEveryVersionMigrates() }
    #expect(found?.contains("I206") == true || found?.contains("I208") == true, "\(found ?? "-")")
    #expect(found?.contains("price") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds a renamed attribute without originalName")
  func renamedAttribute() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, RenamedV2.self] }
      static var stages: [MigrationStage] {
        [.lightweight(fromVersion: BooksV1.self, toVersion: RenamedV2.self)]
      }
    }
    let store = try shelf(MigrationTest(Plan.self))
    try store.migrate()
    let found = mistake { try store.expectNoChange(of: RenamedV2.Book.self) }
    #expect(
      found?.contains(
        "2 values of Book.subtitle are gone: no later property has them; if it was renamed, write @Attribute(originalName: \"subtitle\")"
      ) == true, "\(found ?? "-")")
  }

  @Test("the test kit finds an edited released version")
  func editedVersion() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [EditedV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [.lightweight(fromVersion: EditedV1.self, toVersion: BooksV2.self)]
      }
    }
    let released = try shelf(MigrationTest(BooksPlan.self))
    let found = mistake {
      try MigrationTest(Plan.self).store(copying: released.url.path).migrate()
    }
    #expect(found?.contains("I201") == true, "\(found ?? "-")")
    #expect(found?.contains("ZEDITION") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds a transform that writes wrong values")
  func wrongTransform() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
            didMigrate: { context in
              for book in try context.fetch(FetchDescriptor<BooksV2.Book>()) {
                book.pages = book.pages / 100 * 100 + 1
              }
            })
        ]
      }
    }
    let store = try shelf(MigrationTest(Plan.self))
    try store.migrate()
    let found = mistake { try store.expectNoChange(of: BooksV2.Book.self) }
    #expect(found?.contains("row 1: pages was 300, and is 301") == true, "\(found ?? "-")")
    try store.expectNoChange(of: BooksV2.Book.self, except: ["pages"])
  }

  @Test("the test kit finds dropped rows")
  func droppedRows() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
            didMigrate: { context in
              try context.delete(model: BooksV2.Book.self, where: #Predicate { $0.pages < 400 })
            })
        ]
      }
    }
    let store = try shelf(MigrationTest(Plan.self))
    try store.migrate()
    let found = mistake { try store.expectRowsKept() }
    #expect(found?.contains("Book: 3 rows before, 2 after") == true, "\(found ?? "-")")
    #expect(found?.contains("pass except: [\"Book\"") == true, "\(found ?? "-")")
    let rows = mistake { try store.expectNoChange(of: BooksV2.Book.self) }
    #expect(rows?.contains("row 1 is gone") == true, "\(rows ?? "-")")
  }

  @Test("the test kit finds duplicates under a new unique constraint")
  func duplicates() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, UniqueV2.self] }
      static var stages: [MigrationStage] {
        [.lightweight(fromVersion: BooksV1.self, toVersion: UniqueV2.self)]
      }
    }
    let found = mistake { try shelf(MigrationTest(Plan.self)).migrate() }
    #expect(found?.contains("I205") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds rows without a value for an attribute that becomes required")
  func nilIntoRequired() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, RequiredSubtitleV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: RequiredSubtitleV2.self, willMigrate: nil,
            didMigrate: nil)
        ]
      }
    }
    let found = mistake { try MigrationTest(Plan.self).expectEveryVersionMigrates(seed: 3) }
    #expect(found?.contains("I204") == true, "\(found ?? "-")")
    #expect(found?.contains("of seed 3") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds links that the code cuts at the other end")
  func brokenInverse() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
            didMigrate: { context in
              for author in try context.fetch(FetchDescriptor<BooksV2.Author>()) {
                author.books = author.books.filter { $0.pages > 300 }
              }
            })
        ]
      }
    }
    let store = try shelf(MigrationTest(Plan.self))
    try store.migrate()
    let found = mistake { try store.expectRowsKept() }
    #expect(found?.contains("3 links before, 2 after") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds two versions with one identifier")
  func equalIdentifiers() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, EditedV1.self] }
      static var stages: [MigrationStage] { [] }
    }
    let found = mistake { try MigrationTest(Plan.self).expectEveryVersionMigrates() }
    #expect(found?.contains("have the same version, 1.0.0") == true, "\(found ?? "-")")
  }

  @Test("the test kit finds a closure that throws at one row")
  func throwingClosure() throws {
    enum Plan: SchemaMigrationPlan {
      struct NoSubtitle: Error {}
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
            didMigrate: { context in
              for book in try context.fetch(FetchDescriptor<BooksV2.Book>()) {
                guard let subtitle = book.subtitle else { throw NoSubtitle() }
                book.heading += ": \(subtitle)"
              }
            })
        ]
      }
    }
    let test = MigrationTest(Plan.self)
    let found = mistake { try shelf(test).migrate() }
    #expect(found?.contains("didMigrate threw: NoSubtitle()") == true, "\(found ?? "-")")
    let random = mistake { try test.expectEveryVersionMigrates(seed: 1) }
    #expect(random?.contains("NoSubtitle") == true, "\(random ?? "-")")
  }

  @Test(
    "the test kit finds nothing where code ignores a failed write, because the engine ends such a run"
  )
  func ignoredFailure() throws {
    enum Plan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
            didMigrate: { context in
              // What a context of its own could not write is lost, and nobody asks.
              let other = ModelContext(context.container)
              for book in try other.fetch(FetchDescriptor<BooksV2.Book>()) {
                book.isLong = book.pages > 500
              }
              try? other.save()
              other.rollback()
              for book in try context.fetch(FetchDescriptor<BooksV2.Book>()) {
                book.heading += "!"
                do { try context.save() } catch { context.rollback() }
              }
            })
        ]
      }
    }
    let test = MigrationTest(Plan.self)
    let found = mistake { try test.expectUnchangedAfterFailure(atEachRowOf: shelf(test)) }
    #expect(found == nil, "\(found ?? "-")")
  }
}
