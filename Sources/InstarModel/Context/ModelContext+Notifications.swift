public import Foundation

/// What an app can follow of the changes of its contexts.
///
/// ```swift
/// for await _ in NotificationCenter.default.notifications(named: ModelContext.didSave) { reload() }
/// ```
///
/// They are posted on the thread that saves, with the context as their object. A migration's stages post none.
extension ModelContext {
  /// Posted before changes are written.
  public static let willSave = Notification.Name("InstarModelContextWillSave")
  /// Posted after changes were written. `userInfo` has an array of `PersistentIdentifier` under each of the raw values of
  /// `NotificationKey` that name identifiers.
  public static let didSave = Notification.Name("InstarModelContextDidSave")

  /// The keys of a notification's `userInfo`.
  public enum NotificationKey: String {
    /// The rows that were made.
    case insertedIdentifiers = "inserted"
    /// The rows that were changed.
    case updatedIdentifiers = "updated"
    /// The rows that are gone.
    case deletedIdentifiers = "deleted"
  }

  /// Accepted as in SwiftData. Changes are seen by fetches and by other models as soon as they are made.
  public func processPendingChanges() {}

  /// Runs `save`, and posts what it is about to do and what it did. Where it throws, nothing is posted after it, even if some
  /// of several stores were saved.
  func announcingSave(_ save: () throws -> Void) throws {
    // Nobody is told of a stage's saves, which may be large.
    guard phase == nil else { return try save() }
    NotificationCenter.default.post(name: Self.willSave, object: self)
    let (inserted, updated) = (insertedModelsArray, changedModelsArray)
    let deleted = deletedModelsArray.map(\.persistentModelID)
    try save()
    NotificationCenter.default.post(
      name: Self.didSave, object: self,
      userInfo: [
        NotificationKey.insertedIdentifiers.rawValue: inserted.map(\.persistentModelID),
        NotificationKey.updatedIdentifiers.rawValue: updated.map(\.persistentModelID),
        NotificationKey.deletedIdentifiers.rawValue: deleted,
      ])
  }
}
