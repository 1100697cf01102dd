/// A program that copies the write-ahead log of a store to another place while apps use the store.
///
/// It sees only what is in the log. So Instar writes a store with a replicator in write-ahead-log mode only, and never
/// checkpoints or truncates its log: both make the replicator lose its place, and copy the whole store again.
public struct Replicator: Sendable, Codable, Hashable {
  /// The replicators that Instar recognizes.
  @frozen
  public enum Name: String, Sendable, Codable, Hashable {
    /// Litestream, and servers that keep its tables.
    case litestream
  }

  /// Which replicator it is.
  public var name: Name
  /// The folder beside the store in which the replicator keeps its state; `nil` without one.
  public var folder: String?
  /// The tables of the replicator in the store, in the order of their names.
  public var tables: [String]

  /// A replicator that was found beside a store or in it.
  public init(name: Name, folder: String?, tables: [String]) {
    self.name = name
    self.folder = folder
    self.tables = tables
  }

  /// The begin of the names of Litestream's tables. They belong to no version of a store.
  package static let tablePrefix = "_litestream_"

  /// Returns whether a file of that name is a folder of a replicator, such as `.a.store-litestream`.
  public static func isFolder(_ name: String) -> Bool {
    name.hasPrefix(".") && name.hasSuffix(folderSuffix)
  }

  /// Returns the path of the folder that a replicator of a store has, whether it exists or not.
  package static func folder(ofStore store: String) -> String {
    store.sibling(".\(store.lastName)\(folderSuffix)")
  }

  private static let folderSuffix = "-litestream"

  /// What shows that the replicator is attached, such as "the folder '/srv/app/.a.store-litestream'".
  public var signs: String {
    let folder = folder.map { ["the folder '\($0)'"] } ?? []
    let tables = tables.isEmpty ? [] : ["the tables \(tables.joined(separator: ", "))"]
    return (folder + tables).joined(separator: " and ")
  }
}
