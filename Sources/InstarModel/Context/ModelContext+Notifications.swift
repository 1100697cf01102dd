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
  /// `NotificationKey` that name identifiers: of what the code changed, and of what delete rules changed and deleted. Where
  /// `save()` throws, it is posted only if some of several stores were saved, and tells what is in those.
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

  /// Nobody is told of a stage's saves, which may be large.
  var isAnnouncingSaves: Bool { phase == nil }

  func announceSave() {
    guard isAnnouncingSaves else { return }
    NotificationCenter.default.post(name: Self.willSave, object: self)
  }

  /// Tells what was committed to stores.
  func announce(_ saved: [SaveNotice]) {
    guard isAnnouncingSaves else { return }
    NotificationCenter.default.post(
      name: Self.didSave, object: self,
      userInfo: [
        NotificationKey.insertedIdentifiers.rawValue: saved.flatMap(\.inserted)
          .map(\.persistentModelID),
        NotificationKey.updatedIdentifiers.rawValue: saved.flatMap(\.updated)
          .map(\.persistentModelID),
        NotificationKey.deletedIdentifiers.rawValue: saved.flatMap(\.deleted),
      ])
  }
}

/// What a save writes to one store, noted before it is written: new models get their identifiers by it, and models that
/// are gone lose theirs.
struct SaveNotice {
  let store: ModelStore
  let inserted: [any PersistentModel]
  let updated: [any PersistentModel]
  let deleted: [PersistentIdentifier]
}
