import InstarSchema
public import InstarWire

/// A failure of one store, which the journal has, and the stores that failed in the same way after it.
public struct RepeatedFailure: Sendable, Hashable {
  /// The report that the journal has.
  public var first: RunReport
  /// How many other stores failed in the same way since the last entry about them.
  public var count: Int
  /// The first of them.
  public var stores: [String]

  static let namedStores = 5
}
