import Foundation
package import Synchronization

extension ModelConfiguration {
  /// The CloudKit database that mirrors a store. Linux has no CloudKit: Instar accepts the value, reports it once on
  /// standard error, and the store stays local.
  public struct CloudKitDatabase: Sendable, Hashable {
    let containerIdentifier: String?

    /// The database in the app's entitlements; on Linux the same as `none`.
    public static let automatic = CloudKitDatabase(containerIdentifier: nil)
    /// No mirror.
    public static let none = CloudKitDatabase(containerIdentifier: nil)

    /// The private database of a CloudKit container.
    public static func `private`(_ privateDBName: String) -> CloudKitDatabase {
      CloudKitDatabase(containerIdentifier: privateDBName)
    }
  }

  /// The app group whose folder has the store. Linux has no app groups: Instar accepts the value, reports it once on
  /// standard error, and puts the store into the user's data folder.
  public struct GroupContainer: Sendable, Hashable {
    let identifier: String?

    /// The group in the app's entitlements; on Linux the same as `none`.
    public static let automatic = GroupContainer(identifier: nil)
    /// The app's own folder.
    public static let none = GroupContainer(identifier: nil)

    /// The folder of an app group.
    public static func identifier(_ groupName: String) -> GroupContainer {
      GroupContainer(identifier: groupName)
    }
  }

  /// The CloudKit container that was asked for; it is not used on Linux.
  public var cloudKitContainerIdentifier: String? { cloudKitDatabase.containerIdentifier }

  /// The app group that was asked for; it is not used on Linux.
  public var groupAppContainerIdentifier: String? { groupContainer.identifier }

  /// Reports what was asked for and is missing on Linux.
  static func report(_ cloudKitDatabase: CloudKitDatabase, _ groupContainer: GroupContainer) {
    if let name = cloudKitDatabase.containerIdentifier {
      reportOnce(
        "CloudKit is not available on Linux: Instar ignores '\(name)', and the store stays local")
    }
    if let name = groupContainer.identifier {
      reportOnce(
        "app groups are not available on Linux: Instar ignores '\(name)', and the store is in the user's data folder"
      )
    }
  }

  /// The lines written to standard error so far.
  package static let reported = Mutex<Set<String>>([])

  /// Writes a line to standard error, each text once in the life of the process.
  package static func reportOnce(_ text: String) {
    guard reported.withLock({ $0.insert(text).inserted }) else { return }
    FileHandle.standardError.write(Data("Instar: \(text)\n".utf8))
  }
}
