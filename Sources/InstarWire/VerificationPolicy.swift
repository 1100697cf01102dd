/// How much of a store and its clone a run reads before the cutover.
public enum VerificationPolicy: String, Sendable, Codable, Hashable, CaseIterable {
  /// Every page, each index against its table, CHECK constraints, required values and the numbers of rows. Links and
  /// foreign keys only where code of the plugin ran or rows were written. What a stage cannot have changed is read once
  /// for store and clone.
  case standard
  /// All of this in both files, with links and foreign keys, and SQLite's `integrity_check`: some ten seconds for each
  /// GiB of both.
  case full
}
