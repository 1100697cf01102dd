internal import Synchronization

/// Values that are equal for many stores of a fleet, kept for the next store.
package final class BoundedCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let values = Mutex<[Key: Value]>([:])
  /// A fleet has few schemas. Above this number all values are forgotten.
  private static var limit: Int { 32 }

  package init() {}

  /// Returns the value for a key that was used before and is still kept.
  func known(_ key: Key) -> Value? { values.withLock { $0[key] } }

  /// Returns the value for a key, made at its first use; always made for no key.
  ///
  /// - Throws: The error of `make`; nothing is kept then.
  package func value<Failure: Error>(
    of key: Key?, make: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let key else { return try make() }
    if let known = known(key) { return known }
    let made = try make()
    values.withLock { values in
      if values.count >= Self.limit { values.removeAll() }
      values[key] = made
    }
    return made
  }
}

/// What follows from the schema of a store alone, kept for other stores: those of a fleet have equal schemas.
///
/// The key is the schema itself, byte for byte. So a hostile store finds nothing but what it would get without a cache.
package typealias SchemaCache<Value: Sendable> = BoundedCache<SchemaKey, Value>
