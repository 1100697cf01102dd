import InstarSchema
import InstarStore

/// The two contexts of a bridge.
extension ModelContext {
  /// Returns the model of the same row in the version of this context, in the code of a `bridge` stage.
  ///
  /// ```swift
  /// try new.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
  ///   guard let before = try old.counterpart(of: note, as: NotesV1.Note.self) else { return }
  ///   note.words = before.body.split(separator: " ").count
  /// }
  /// ```
  ///
  /// Both directions work. Renamed classes are found, too.
  ///
  /// - Returns: The model, or `nil` if the row does not exist in this version: it was inserted or deleted since.
  /// - Throws: `unsupported` outside a bridge, if the stage changes the key of the rows, or if their table has no
  ///   rowid; `modelNotInSchema` for a class of another version or model; `invalidModel` if the model has no row yet;
  ///   an error of SQLite.
  public func counterpart<Model: PersistentModel>(
    of model: any PersistentModel, as type: Model.Type
  ) throws -> Model? {
    try failingStage {
      let storage = model._modelStorage
      let name = storage.descriptor.name
      let what = "cannot find the counterpart of \(storage.title)"
      guard let counterparts else {
        throw InstarError(
          .unsupported, what, cause: "only the two contexts of a bridge have counterparts",
          next: "use `old` and `new` as the closure of the stage receives them")
      }
      let wanted = try self.entity(for: type, to: "find")
      guard storage.hasRow, model.modelContext !== self else {
        throw InstarError(
          .invalidModel, what,
          cause: storage.hasRow
            ? "the model belongs to this context itself" : "the model has no row yet",
          next: "pass a saved model of the other context")
      }
      guard let own = counterparts[name], let entity = stores.entity(named: own) else {
        throw InstarError(
          .unsupported, what,
          cause: "the stage removes or adds \(name), or changes the key of its rows",
          next: "fetch the model by the values of its properties")
      }
      guard entity.isInFamily(of: wanted) || wanted.isInFamily(of: entity) else {
        throw InstarError(
          .modelNotInSchema, what,
          cause: "the counterpart is a model of \(own), not of \(wanted.layout.name)",
          next: "pass the class of the same model in the version of this context")
      }
      let reader = stores.reader(of: entity)
      return try rows(reader.rowStatement, reader, [.key(storage.key)]).first as? Model
    }
  }

  /// The error of a change through `old` of a bridge.
  static func readOnly() -> InstarError {
    InstarError(
      .unsupported, "cannot save the changes of `old`",
      cause: "`old` reads a copy of the store from before the stage, and no change of it is kept",
      next: "change the models of `new`")
  }
}
