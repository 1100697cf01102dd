import Foundation
import InstarSchema

/// Which file names are stores, and which belong to one.
enum StoreName {
  private static let sideFileSuffixes = SideFile.allCases.map(\.rawValue)

  /// The name of the store that a file of that name is, or is a side file of, if it is either.
  ///
  /// ```swift
  /// StoreName.store(of: "a.store-wal")   // "a.store"
  /// ```
  static func store(of name: String) -> String {
    sideFileSuffixes.first(where: name.hasSuffix).map { String(name.dropLast($0.count)) } ?? name
  }

  /// Is a file of that name a store? A side file is not, nor is what an editor leaves for a while.
  static func matches(_ name: String, patterns: [String]) -> Bool {
    guard !name.isEmpty, !sideFileSuffixes.contains(where: name.hasSuffix),
      !name.hasSuffix("~"), !(name.hasPrefix("#") && name.hasSuffix("#")), !name.hasPrefix(".#")
    else { return false }
    // FNM_PERIOD: a hidden file is matched only by a pattern that begins with a dot itself.
    return patterns.contains { fnmatch($0, name, FNM_PERIOD) == 0 }
  }

  /// Folders that are never entered: our own clones and backups, the external data of a store, and a replicator's
  /// copies of its log.
  static func isPrivateFolder(_ name: String) -> Bool {
    name == InstarFolder.name || (name.hasPrefix(".") && name.hasSuffix("_SUPPORT"))
      || Replicator.isFolder(name)
  }
}
