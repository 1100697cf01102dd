/// Identifies a model by its row and store.
public struct PersistentIdentifier: Hashable, Identifiable, Sendable, Codable {
  /// The part of an identifier that differs between the rows of one entity.
  public struct ID: Hashable, Sendable, Codable {
    /// The row's key, any 64-bit number; before the first save a temporary key.
    let key: Int64
    let entityName: String
    /// `nil` exactly in a temporary identifier.
    let storeIdentifier: String?

    var isTemporary: Bool { storeIdentifier == nil }
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
  /// Compares entity and key. Temporary identifiers come before those of rows.
  public static func < (left: PersistentIdentifier, right: PersistentIdentifier) -> Bool {
    (left.entityName, left.id.isTemporary ? 0 : 1, left.id.key)
      < (right.entityName, right.id.isTemporary ? 0 : 1, right.id.key)
  }
}

extension PersistentIdentifier: CustomStringConvertible {
  /// "Note/p12" for a row, "Note/t1" before the first save.
  public var description: String {
    "\(entityName)/\(id.isTemporary ? "t" : "p")\(id.key)"
  }
}
