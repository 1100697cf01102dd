public import InstarSchema

/// An operator's order to leave a store alone, until `instarctl release`. A restore places one too.
///
/// It belongs to a path, and to the file that had this path: a store that was moved is still held, and so is a file
/// that took the store's place.
public struct Hold: Sendable, Codable, Hashable {
  /// The identifier, in the form of a run's.
  public var id: String
  /// The path of the store, absolute.
  public var store: String
  /// The device of the file that had this path when the hold was placed.
  public var device: UInt64
  /// The inode of that file.
  public var inode: UInt64
  /// When that file was created, in nanoseconds since 1970; 0 if its file system does not say. The kernel gives the
  /// inode of a deleted file to a new one.
  public var createdNanoseconds: Int64
  /// The user who placed the hold.
  public var by: String
  /// When the hold was placed, in seconds since 1970.
  public var since: Double
  /// The reason, one line.
  public var why: String
  /// The run of the restore that placed the hold; left out if a person did.
  public var run: String?

  /// A hold that was placed by a person.
  public init(
    id: String, store: String, device: UInt64, inode: UInt64, createdNanoseconds: Int64, by: String,
    since: Double, why: String
  ) {
    self.id = id
    self.store = store
    self.device = device
    self.inode = inode
    self.createdNanoseconds = createdNanoseconds
    self.by = by
    self.since = since
    self.why = why
  }

  /// Who placed the hold, when, and why, in one line.
  public var sentence: String {
    "held by \(by) since \(Quantity.time(secondsSince1970: since)): \(why)"
  }

  /// A reason is shown in one line, and each status has it.
  private static let longestReasonBytes = 500

  /// Refuses the reason of a hold or a pause that is too long, or has more than one line.
  ///
  /// - Parameter what: What cannot be done with it.
  /// - Throws: `wrongUsage`.
  public static func requireShort(_ reason: String, _ what: String) throws(InstarError) {
    guard !reason.contains(where: \.isNewline) else {
      throw InstarError(
        .wrongUsage, what, cause: "the reason has more than one line",
        next: "give a reason of one line")
    }
    guard reason.utf8.count > longestReasonBytes else { return }
    throw InstarError(
      .wrongUsage, what,
      cause: "the reason has \(reason.utf8.count) bytes; it may have \(longestReasonBytes)",
      next: "run the command again with a shorter --why")
  }

  /// The command that ends the hold.
  public var releaseCommand: String { CommandText.release(store) }

  /// The error of an operation that the hold prevents.
  public func refusal(of what: String, store: String) -> InstarError {
    InstarError(
      .heldStore, what, store: store, cause: sentence, state: "unchanged",
      next: "when the reason is gone, run: \(releaseCommand)")
  }
}
