/// Identifies a model by its row and store.
public struct PersistentIdentifier: Hashable, Identifiable, Sendable, Codable {
  /// The part of an identifier that differs between the rows of one entity.
  public struct ID: Hashable, Sendable, Codable {
    /// The row's key; a temporary key before the first save (`isRowKey`).
    let key: Int64
    let entityName: String
    let storeIdentifier: String?
  }

  /// What differs between two rows of one entity.
  public let id: ID
  /// The name of the model's class in its schema.
  public var entityName: String { id.entityName }
  /// The store's identifier; `nil` before the first save.
  public var storeIdentifier: String? { id.storeIdentifier }

  init(entityName: String, key: Int64, storeIdentifier: String?) {
    id = ID(key: key, entityName: entityName, storeIdentifier: storeIdentifier)
  }
}

/// Ordered by entity, then by the key of the row.
extension PersistentIdentifier: Comparable {
  /// Compares entity and key. Temporary keys come before those of rows.
  public static func < (left: PersistentIdentifier, right: PersistentIdentifier) -> Bool {
    (left.entityName, left.id.key) < (right.entityName, right.id.key)
  }
}

extension PersistentIdentifier: CustomStringConvertible {
  /// "Note/p12" for a row, "Note/t1" before the first save.
  public var description: String {
    "\(entityName)/\(id.key.isRowKey ? "p\(id.key)" : "t\(id.key - .min)")"
  }
}

extension Int64 {
  /// Whether this is the key of a row. Temporary keys count up from the lowest integer, because 0 and negative
  /// numbers are valid keys in ordinary tables.
  var isRowKey: Bool { self >= .min / 2 }
}
