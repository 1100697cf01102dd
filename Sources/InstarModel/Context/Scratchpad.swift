import Foundation
import InstarSchema
import InstarStore

extension ModelContext {
  /// Keeps values from one closure of a migration plan to a later one in the same run.
  ///
  /// Only the contexts of a stage's closures have one. In other contexts its methods throw `unsupported`.
  public var scratchpad: Scratchpad {
    Scratchpad(store: keptValues, failures: stores.stageFailures)
  }
}

/// Keeps values during a run: `willMigrate` saves what it reads from the old models, and `didMigrate` uses it to set
/// the new ones.
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
/// The values are outside the store, and take constant memory. They last for all stages of a run, whether or not the
/// context is saved. An interrupted run starts again at its first stage, with an empty scratchpad.
public struct Scratchpad {
  /// `nil` outside the closures of a stage.
  let store: ScratchpadStore?
  let failures: StageFailures?

  /// Keeps a value under a name and replaces the earlier one.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; the error of the value's encoding.
  public func save(_ value: some Encodable, for name: String) throws {
    try failures.watching { try write(value, name, row: nil) }
  }

  /// Keeps a value under a name for one model and replaces the earlier one. The model of the same row in a later
  /// version finds it, even if its class was renamed.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` if the model has no row yet; the error
  ///   of the value's encoding.
  public func save(_ value: some Encodable, for name: String, of model: any PersistentModel) throws
  {
    try failures.watching { try write(value, name, row: row(of: model, name)) }
  }

  /// Returns the value that was kept under a name, or `nil`.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `stageFailed` if the value is of another type.
  public func value<Value: Decodable>(_ type: Value.Type, for name: String) throws -> Value? {
    try failures.watching { try read(type, name, row: nil) }
  }

  /// Returns the value that was kept under a name for one model, or `nil`.
  ///
  /// - Throws: `unsupported` outside the closures of a stage; `invalidModel` if the model has no row yet;
  ///   `stageFailed` if the value is of another type.
  public func value<Value: Decodable>(
    _ type: Value.Type, for name: String, of model: any PersistentModel
  ) throws -> Value? {
    try failures.watching { try read(type, name, row: row(of: model, name)) }
  }

  // MARK: Rows

  private func row(of model: any PersistentModel, _ name: String) throws -> PersistentIdentifier {
    let identifier = model.persistentModelID
    guard !identifier.id.isTemporary, model.modelContext != nil else {
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
      // The value may be a `nil` of an optional type.
      return try decoder.decode(Value?.self, from: kept)
    } catch {
      let owner = row.map { " of \($0)" } ?? ""
      throw InstarError(
        .stageFailed, "cannot read '\(name)'\(owner) from the scratchpad",
        cause: "the kept value is not a \(type)", next: "read it with the type that was saved")
    }
  }

  // JSON has no literals for these.
  private static let infinity = "inf"
  private static let notANumber = "nan"

  private func bind(_ name: String, _ row: PersistentIdentifier?, to statement: SQLStatement) {
    statement.bind(name, at: 1)
    // A value without a model gets the empty name, which no entity has.
    statement.bind(row?.entityName ?? "", at: 2)
    statement.bind(row?.id.key ?? 0, at: 3)
  }

  private func perform<Value>(_ name: String, _ body: (SQLSession) throws -> Value) throws -> Value
  {
    guard let store else {
      throw InstarError(
        .unsupported, "cannot use the scratchpad for '\(name)'",
        cause: "only the contexts of willMigrate and didMigrate have one",
        next: "use the context that the closure receives")
    }
    return try store.perform(body)
  }
}
