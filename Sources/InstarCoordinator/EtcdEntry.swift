import Foundation

/// A key of etcd with its value.
struct EtcdEntry: Sendable, Hashable {
  var key: String
  var value: Data
  /// The revision of etcd at which the entry was last written.
  var modified: Int64
  /// The lease with which the entry ends; 0 without one.
  var lease: Int64
}

/// The entries of a range at one revision of etcd.
struct EtcdRange: Sendable, Hashable {
  /// In the order of their keys.
  var entries: [EtcdEntry]
  /// How many keys the range has, without the limits of the request.
  var count: Int
  /// The revision of etcd at which the range was read.
  var revision: Int64
}

/// What must hold for a transaction to write.
enum EtcdCondition: Sendable, Hashable {
  /// There is no such key.
  case isAbsent(String)
  /// There is such a key.
  case exists(String)
  /// Nobody wrote the key since this revision.
  case isUnchanged(String, since: Int64)
  /// The key ends with this lease.
  case hasLease(String, Int64)
}

/// What a transaction writes.
enum EtcdChange: Sendable, Hashable {
  /// Sets a key, which ends with the lease if there is one.
  case put(String, Data, lease: Int64? = nil)
  /// Deletes a key.
  case delete(String)
  /// Deletes all keys that begin with this text.
  case deleteAll(String)
}
