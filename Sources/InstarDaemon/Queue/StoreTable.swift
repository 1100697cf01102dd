import HashTreeCollections

/// A value for each store, by its path.
///
/// The path of a folder is kept once for all stores in it: of 100,000 stores the paths would need more memory than the
/// values. It grows without copies, and without room for as many values again.
struct StoreTable<Value> {
  private var folders: TreeDictionary<String, TreeDictionary<String, Value>> = [:]
  private(set) var count = 0

  subscript(path: String) -> Value? {
    get {
      let (folder, name) = Self.parts(of: path)
      return folders[folder]?[name]
    }
    set {
      let (folder, name) = Self.parts(of: path)
      if let newValue {
        let old = folders[folder, default: [:]].updateValue(newValue, forKey: name)
        if old == nil { count += 1 }
      } else if folders[folder]?.removeValue(forKey: name) != nil {
        count -= 1
        if folders[folder]?.isEmpty == true { folders[folder] = nil }
      }
    }
  }

  /// The paths of all stores, in no order.
  var keys: [String] {
    var paths: [String] = []
    paths.reserveCapacity(count)
    for (path, _) in self { paths.append(path) }
    return paths
  }

  var values: some Sequence<Value> { folders.values.lazy.flatMap(\.values) }

  /// The paths of those folders that hold stores themselves and are wanted, in no order.
  func folders(where isWanted: (String) -> Bool) -> [String] {
    folders.keys.lazy.map { $0.isEmpty ? "/" : $0 }.filter(isWanted)
  }

  /// The paths of the stores in a folder itself, in no order.
  func paths(in folder: String) -> [String] {
    let folder = folder == "/" ? "" : folder
    return folders[folder]?.keys.map { Self.path(folder, $0) } ?? []
  }

  /// The folder has no slash at its end: that of "/a.store" is "". A path without a slash is a name in no folder.
  private static func parts(of path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (noFolder, path) }
    return (String(path[..<slash]), String(path[path.utf8.index(after: slash)...]))
  }

  /// No path has such a folder.
  private static var noFolder: String { "\0" }

  fileprivate static func path(_ folder: String, _ name: String) -> String {
    folder == noFolder ? name : "\(folder)/\(name)"
  }
}

extension StoreTable: Sequence {
  func makeIterator() -> some IteratorProtocol<(key: String, value: Value)> {
    folders.lazy.flatMap { folder, stores in
      stores.lazy.map { (key: Self.path(folder, $0), value: $1) }
    }.makeIterator()
  }
}

extension StoreTable: Sendable where Value: Sendable {}
