import Foundation
import InstarSchema
package import InstarStore

extension ModelContext {
  /// What the plan's code keeps from one closure to a later one of the same run.
  ///
  /// There is one in the closures of a stage only; elsewhere its methods throw.
  public var scratchpad: Scratchpad { Scratchpad(context: self) }
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
  let context: ModelContext

  /// Keeps a value under a name, in place of the one that was kept there.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; what the value's encoding throws.
  public func save(_ value: some Encodable, for name: String) throws {
    try write(value, name, row: nil)
  }

  /// Keeps a value under a name for one model, in place of the one that was kept there. It is found by the model of the same
  /// row in a later version, also where its class has got another name since.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` for a model that has no row yet; what the
  ///   value's encoding throws.
  public func save(_ value: some Encodable, for name: String, of model: any PersistentModel) throws
  {
    try write(value, name, row: row(of: model, name))
  }

  /// The value that was kept under a name; `nil` where there is none.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `stageFailed` where a value of another type was kept.
  public func value<Value: Decodable>(_ type: Value.Type, for name: String) throws -> Value? {
    try read(type, name, row: nil)
  }

  /// The value that was kept under a name for one model; `nil` where there is none.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` for a model that has no row yet; `stageFailed`
  ///   where a value of another type was kept.
  public func value<Value: Decodable>(
    _ type: Value.Type, for name: String, of model: any PersistentModel
  ) throws -> Value? {
    try read(type, name, row: row(of: model, name))
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
        "INSERT OR REPLACE INTO \(ScratchpadTable.name) VALUES (?1, ?2, ?3, ?4)")
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
        "SELECT value FROM \(ScratchpadTable.name) WHERE name = ?1 AND entity = ?2 AND key = ?3")
      bind(name, row, to: statement)
      defer { statement.reset() }
      return try statement.step() ? statement.data(at: 0) : nil
    }
    guard let kept else { return nil }
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: Self.infinity, negativeInfinity: "-\(Self.infinity)", nan: Self.notANumber)
    do {
      return try decoder.decode(type, from: kept)
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
    guard context.phase != nil else {
      throw InstarError(
        .unsupported, "cannot use the scratchpad for '\(name)'",
        cause: "there is one in willMigrate and didMigrate only",
        next: "use it with the context that the closure is given")
    }
    return try context.store.connection.perform { session in
      try ScratchpadTable.make(session)
      return try body(session)
    }
  }
}

/// Where the values of a run are: a table of SQLite's temporary database, a file of its own that goes away with the
/// connection (sqlite.org/tempfiles.html, section 2.6). The store's structure does not show it.
package enum ScratchpadTable {
  static let name = "temp.instar_scratchpad"

  static func make(_ session: SQLSession) throws {
    try session.statement(
      "CREATE TEMP TABLE IF NOT EXISTS instar_scratchpad (name TEXT, entity TEXT, key INTEGER, "
        + "value BLOB, PRIMARY KEY (name, entity, key)) WITHOUT ROWID"
    ).run()
  }

  /// Has what was kept for models found by those of the same rows after a change of schema.
  ///
  /// - Parameter entities: Old and new layout of each entity that stays.
  /// - Throws: `unsupported` where values were kept for models whose rows are known by another key afterwards. Nothing is
  ///   then changed.
  package static func follow(
    _ entities: [(old: EntityLayout, new: EntityLayout)], _ session: SQLSession
  ) throws {
    session.carryRowKeys(entities.map { ($0.old.key, $0.new.key) })
    guard
      try session.integer("SELECT 1 FROM temp.sqlite_schema WHERE name = 'instar_scratchpad'")
        != nil
    else { return }
    for (old, new) in entities where !new.key.continues(old.key) {
      guard
        try session.integer(
          "SELECT 1 FROM \(name) WHERE entity = \(AttributeValue.text(old.name).literal) LIMIT 1")
          == nil
      else {
        throw InstarError(
          .unsupported, "cannot keep values of \(new.name) in the scratchpad",
          cause: "its primary key changes in this stage, and its rows are not told by it any more",
          next: "change the key in a stage of its own, before or after")
      }
    }
    let renamed = entities.filter { $0.old.name != $0.new.name }
    // Two entities may have exchanged their names: no name is taken before all are given away.
    for (position, names) in renamed.enumerated() {
      try update(from: names.old.name, to: "\(position)", session)
    }
    for (position, names) in renamed.enumerated() {
      try update(from: "\(position)", to: names.new.name, session)
    }
  }

  /// Forgets all values. A connection that goes on after the run keeps nothing.
  package static func drop(_ session: SQLSession) throws {
    try session.run("DROP TABLE IF EXISTS \(name)")
  }

  private static func update(from old: String, to new: String, _ session: SQLSession) throws {
    let statement = try session.statement("UPDATE \(name) SET entity = ?1 WHERE entity = ?2")
    statement.bind(new, at: 1)
    statement.bind(old, at: 2)
    try statement.run()
  }
}
