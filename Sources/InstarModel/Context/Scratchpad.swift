import Foundation
import InstarSchema
import InstarStore

extension ModelContext {
  /// What the plan's code keeps from one closure to a later one of the same run.
  ///
  /// There is one in the closures of a stage only; elsewhere its methods throw.
  public var scratchpad: Scratchpad {
    Scratchpad(store: keptValues, failures: stores.stageFailures)
  }
}

/// Values that a plan's code keeps while a store is migrated: saved in `willMigrate`, where the old models can be read, and
/// used in `didMigrate`, where the new ones can be set.
///
/// ```swift
/// willMigrate: { context in
///   try context.enumerate(FetchDescriptor<NotesV1.Note>()) { note in
///     try context.scratchpad.save(note.pages, for: "pages", of: note)
///   }
/// },
/// didMigrate: { context in
///   try context.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
///     let text = try context.scratchpad.value(String.self, for: "pages", of: note)
///     note.pages = text.flatMap { Int($0) } ?? 0
///   }
/// }
/// ```
///
/// Values are kept outside the store and in constant memory. They last for all stages of one run, whether or not the
/// context is saved, and are gone when it ends: a run that is interrupted begins anew, at its first stage.
public struct Scratchpad {
  /// `nil` outside the closures of a stage.
  let store: ScratchpadStore?
  let failures: StageFailures?

  /// Keeps a value under a name, in place of the one that was kept there.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; what the value's encoding throws.
  public func save(_ value: some Encodable, for name: String) throws {
    try failingStage { try write(value, name, row: nil) }
  }

  /// Keeps a value under a name for one model, in place of the one that was kept there. It is found by the model of the same
  /// row in a later version, also where its class has got another name since.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` for a model that has no row yet; what the
  ///   value's encoding throws.
  public func save(_ value: some Encodable, for name: String, of model: any PersistentModel) throws
  {
    try failingStage { try write(value, name, row: row(of: model, name)) }
  }

  /// The value that was kept under a name; `nil` where there is none.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `stageFailed` where a value of another type was kept.
  public func value<Value: Decodable>(_ type: Value.Type, for name: String) throws -> Value? {
    try failingStage { try read(type, name, row: nil) }
  }

  /// The value that was kept under a name for one model; `nil` where there is none.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` for a model that has no row yet; `stageFailed`
  ///   where a value of another type was kept.
  public func value<Value: Decodable>(
    _ type: Value.Type, for name: String, of model: any PersistentModel
  ) throws -> Value? {
    try failingStage { try read(type, name, row: row(of: model, name)) }
  }

  /// A value that is not kept, or not found again, is lost: an error fails the stage, also where the closure catches it.
  private func failingStage<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      failures?.note(error)
      throw error
    }
  }

  // MARK: Rows

  private func row(of model: any PersistentModel, _ name: String) throws -> PersistentIdentifier {
    let identifier = model.persistentModelID
    guard identifier.id.key.isRowKey, model.modelContext != nil else {
      throw InstarError(
        .invalidModel, "cannot keep '\(name)' of \(identifier)", cause: "the model has no row yet",
        next: "save the context first")
    }
    return identifier
  }

  private func write(
    _ value: some Encodable, _ name: String, row: PersistentIdentifier?
  ) throws {
    let encoder = JSONEncoder()
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: Self.infinity, negativeInfinity: "-\(Self.infinity)", nan: Self.notANumber)
    let data = try encoder.encode(value)
    try perform(name) { session in
      let statement = try session.statement(
        "INSERT OR REPLACE INTO \(ScratchpadStore.table) VALUES (?1, ?2, ?3, ?4)")
      bind(name, row, to: statement)
      statement.bind(data, at: 4)
      try statement.run()
    }
  }

  private func read<Value: Decodable>(
    _ type: Value.Type, _ name: String, row: PersistentIdentifier?
  ) throws -> Value? {
    let kept = try perform(name) { session -> Data? in
      let statement = try session.statement(
        "SELECT value FROM \(ScratchpadStore.table) WHERE name = ?1 AND entity = ?2 AND key = ?3")
      bind(name, row, to: statement)
      defer { statement.reset() }
      return try statement.step() ? statement.data(at: 0) : nil
    }
    guard let kept else { return nil }
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: Self.infinity, negativeInfinity: "-\(Self.infinity)", nan: Self.notANumber)
    do {
      // What was kept may be an optional value without one.
      return try decoder.decode(Value?.self, from: kept)
    } catch {
      let owner = row.map { " of \($0)" } ?? ""
      throw InstarError(
        .stageFailed, "cannot read '\(name)'\(owner) from the scratchpad",
        cause: "what was kept is no \(type)", next: "read it with the type that was saved")
    }
  }

  // JSON has no word for these.
  private static let infinity = "inf"
  private static let notANumber = "nan"

  private func bind(_ name: String, _ row: PersistentIdentifier?, to statement: SQLStatement) {
    statement.bind(name, at: 1)
    // A value of no model has the empty name, which no entity has.
    statement.bind(row?.entityName ?? "", at: 2)
    statement.bind(row?.id.key ?? 0, at: 3)
  }

  private func perform<Value>(_ name: String, _ body: (SQLSession) throws -> Value) throws -> Value
  {
    guard let store else {
      throw InstarError(
        .unsupported, "cannot use the scratchpad for '\(name)'",
        cause: "there is one in willMigrate and didMigrate only",
        next: "use it with the context that the closure is given")
    }
    return try store.perform(body)
  }
}

/// Where the values of one run are: a temporary database of SQLite's, in a file only where it gets large, which goes away
/// with its connection (sqlite.org/inmemorydb.html, "Temporary Databases"). Made when it is used first.
package final class ScratchpadStore {
  static let table = "scratchpad"
  private var connection: StoreConnection?

  package init() {}

  func perform<Value>(_ body: (SQLSession) throws -> Value) throws -> Value {
    if let connection { return try connection.perform(body) }
    let made = try StoreConnection(path: "", durability: .clone)
    try made.perform { session in
      try session.run(
        "CREATE TABLE \(Self.table) (name TEXT, entity TEXT, key INTEGER, value BLOB, "
          + "PRIMARY KEY (name, entity, key)) WITHOUT ROWID")
    }
    connection = made
    return try made.perform(body)
  }

  /// What a stage's change of schema makes of the rows of an entity.
  package struct Change {
    let old: String
    /// `nil` where the entity goes.
    let new: String?
    /// Whether its rows are known by the same keys afterwards.
    let keepsKeys: Bool

    package init(old: String, new: String?, keepsKeys: Bool) {
      self.old = old
      self.new = new
      self.keepsKeys = keepsKeys
    }
  }

  /// Has what was kept for models found by those of the same rows after a change of schema. What was kept for models of
  /// entities that go is forgotten: another one may take the name.
  ///
  /// - Parameter changes: those of all entities that change in one stage, in all stores.
  /// - Throws: `unsupported` where values were kept for models whose rows are known by another key afterwards. Nothing is
  ///   then changed.
  package func follow(_ changes: [Change]) throws {
    guard let connection else { return }
    try connection.perform { session in
      for change in changes where !change.keepsKeys {
        guard let new = change.new else { continue }
        try requireNoValues(of: change.old, becoming: new, session)
      }
      for change in changes where change.new == nil {
        let statement = try session.statement("DELETE FROM \(Self.table) WHERE entity = ?1")
        statement.bind(change.old, at: 1)
        try statement.run()
      }
      let renamed = changes.filter { $0.new != nil && $0.new != $0.old }
      // Two entities may have exchanged their names: no name is taken before all are given away.
      for (position, change) in renamed.enumerated() {
        try rename(change.old, to: "\(position)", session)
      }
      for (position, change) in renamed.enumerated() {
        try rename("\(position)", to: change.new ?? change.old, session)
      }
    }
  }

  private func requireNoValues(
    of old: String, becoming new: String, _ session: SQLSession
  ) throws {
    let name = AttributeValue.text(old).literal
    guard
      try session.integer("SELECT 1 FROM \(Self.table) WHERE entity = \(name) LIMIT 1") != nil
    else { return }
    throw InstarError(
      .unsupported, "cannot keep values of \(new) in the scratchpad",
      cause: "its primary key changes in this stage, and its rows are not told by it any more",
      next: "change the key in a stage of its own, before or after")
  }

  private func rename(_ old: String, to new: String, _ session: SQLSession) throws {
    let statement = try session.statement(
      "UPDATE \(Self.table) SET entity = ?1 WHERE entity = ?2")
    statement.bind(new, at: 1)
    statement.bind(old, at: 2)
    try statement.run()
  }
}
