internal import InstarSchema
internal import InstarStore

extension CloneVerification {
  /// Checks the number of rows of tables that no model describes.
  func requireOthers(_ after: StoreCensus, _ before: StoreCensus) throws {
    guard path.isLightweight else { return }
    for (table, earlier) in before.otherRows.sorted(by: { $0.key < $1.key }) {
      guard let now = after.otherRows[table], now != earlier else { continue }
      throw InstarError(
        .rowsLost, Self.what,
        cause: "table \(table) had \(earlier) rows and has \(now), although no stage runs code",
        next: InstarError.adviceOnDefect)
    }
  }
}
