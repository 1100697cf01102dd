public import Foundation

/// Notifications of saves.
///
/// ```swift
/// for await _ in NotificationCenter.default.notifications(named: ModelContext.didSave) { reload() }
/// ```
///
/// The context posts them on the thread that saves, with itself as the object. Saves in stages of a migration post
/// none.
extension ModelContext {
  /// Posted before a save writes.
  public static let willSave = Notification.Name("InstarModelContextWillSave")
  /// Posted after a save. `userInfo` has an array of `PersistentIdentifier` for each raw value of `NotificationKey`,
  /// including the models that delete rules changed or deleted. If `save()` throws, it is posted only if some of
  /// several stores were saved, and has the identifiers of those.
  public static let didSave = Notification.Name("InstarModelContextDidSave")

  /// The keys of a notification's `userInfo`.
  public enum NotificationKey: String {
    /// The models whose rows were inserted.
    case insertedIdentifiers = "inserted"
    /// The models whose rows were updated.
    case updatedIdentifiers = "updated"
    /// The models whose rows were deleted.
    case deletedIdentifiers = "deleted"
  }

  /// Has no effect: fetches and related models see changes at once.
  public func processPendingChanges() {}

  /// Saves in stages post no notifications, because they may be large.
  var isAnnouncingSaves: Bool { !isInStage }

  func announceSave() {
    guard isAnnouncingSaves else { return }
    NotificationCenter.default.post(name: Self.willSave, object: self)
  }

  /// Posts the notification of what was committed.
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

/// The models that a save writes to one store. It is created before the save, because deleted models lose their
/// identifiers then.
struct SaveNotice {
  let store: ModelStore
  let inserted: [any PersistentModel]
  let updated: [any PersistentModel]
  let deleted: [PersistentIdentifier]
}
