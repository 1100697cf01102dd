/// Which row of which store a model is.
public struct PersistentIdentifier: Hashable, Identifiable, Sendable, Codable {
  /// The part that tells the rows of one entity apart.
  public struct ID: Hashable, Sendable, Codable {
    /// The row's key; no row key for a model that was not saved yet.
    let key: Int64
    let entityName: String
    let storeIdentifier: String?
  }

  public let id: ID
  public var entityName: String { id.entityName }
  /// The store's UUID, or `nil` for a model that was not saved yet.
  public var storeIdentifier: String? { id.storeIdentifier }

  init(entityName: String, key: Int64, storeIdentifier: String?) {
    id = ID(key: key, entityName: entityName, storeIdentifier: storeIdentifier)
  }
}

/// By entity, then in the order in which the rows were made.
extension PersistentIdentifier: Comparable {
  public static func < (left: PersistentIdentifier, right: PersistentIdentifier) -> Bool {
    (left.entityName, left.id.key) < (right.entityName, right.id.key)
  }
}

extension PersistentIdentifier: CustomStringConvertible {
  public var description: String {
    "\(entityName)/\(id.key.isRowKey ? "p\(id.key)" : "t\(id.key - .min)")"
  }
}

extension Int64 {
  /// Whether it is the key of a row. Models that were not saved yet have keys from the lowest integer on: in ordinary tables
  /// 0 and negative numbers are keys like others.
  var isRowKey: Bool { self >= .min / 2 }
}
