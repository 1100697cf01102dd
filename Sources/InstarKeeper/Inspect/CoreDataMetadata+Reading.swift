internal import GRDB
internal import InstarSchema
internal import InstarStore

extension CoreDataMetadata {
  /// The store's metadata; `nil` where there is none that can be read, as a store may be without.
  /// Whether its pages are sound is for `CloneVerification.quickCheck` to say.
  ///
  /// - Throws: what hindered reading, such as `busyStore`.
  static func readIfSound(_ db: Database) throws(InstarError) -> CoreDataMetadata? {
    do {
      return try read(db)
    } catch {
      if error.code == .corruptStore { return nil }
      throw error
    }
  }
}
