import Foundation
package import Synchronization

extension ModelConfiguration {
  /// Which CloudKit database a store is mirrored in. There is no CloudKit on Linux: a value that asks for it is accepted,
  /// said once on standard error, and the store stays local.
  public struct CloudKitDatabase: Sendable, Hashable {
    let containerIdentifier: String?

    /// The database that the app's entitlements name; none on Linux.
    public static let automatic = CloudKitDatabase(containerIdentifier: nil)
    /// No mirror.
    public static let none = CloudKitDatabase(containerIdentifier: nil)

    /// The private database of a container.
    public static func `private`(_ privateDBName: String) -> CloudKitDatabase {
      CloudKitDatabase(containerIdentifier: privateDBName)
    }
  }

  /// The app group in whose folder a store is. There are no app groups on Linux: a value that asks for one is accepted,
  /// said once on standard error, and the store is in the user's data folder.
  public struct GroupContainer: Sendable, Hashable {
    let identifier: String?

    /// The group that the app's entitlements name; none on Linux.
    public static let automatic = GroupContainer(identifier: nil)
    /// The app's own folder.
    public static let none = GroupContainer(identifier: nil)

    /// The folder of that group.
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
      reportOnce("CloudKit is not available on Linux: '\(name)' is not used, the store stays local")
    }
    if let name = groupContainer.identifier {
      reportOnce(
        "app groups are not available on Linux: '\(name)' is not used, the store is in the user's data folder"
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
