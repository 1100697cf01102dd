public import Foundation

/// A key of etcd with its value.
public struct EtcdEntry: Sendable, Hashable {
  /// The key.
  public var key: String
  /// The value.
  public var value: Data
  /// The revision of etcd at which the entry was last written.
  public var modified: Int64
  /// The lease with which the entry ends; 0 without one.
  public var lease: Int64
}

/// The entries of a range at one revision of etcd.
public struct EtcdRange: Sendable, Hashable {
  /// The entries, by key.
  public var entries: [EtcdEntry]
  /// How many keys the range has, without the limits of the request.
  public var count: Int
  /// The revision of etcd at which the range was read.
  public var revision: Int64
}

/// What must hold for a transaction to write.
public enum EtcdCondition: Sendable, Hashable {
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
public enum EtcdChange: Sendable, Hashable {
  /// Sets a key, which ends with the lease if there is one.
  case put(String, Data, lease: Int64? = nil)
  /// Deletes a key.
  case delete(String)
  /// Deletes all keys that begin with this text.
  case deleteAll(String)
}
