import InstarSchema
import InstarWire

extension ProbeReport {
  /// The report as a person reads it: a paragraph.
  var text: String {
    var table = Table(.left, .left)
    table.add("state", standing)
    if let reason, !reason.isEmpty { table.add("reason", reason) }
    if let format { table.add("format", format.rawValue) }
    if format != nil { table.add("version", version?.description ?? "none declared") }
    if let size { table.add("size", size) }
    if let uuid { table.add("uuid", uuid) }
    if let nearestVersion { table.add("nearest", nearestVersion.description) }
    for (index, difference) in differences.enumerated() {
      table.add(index == 0 ? "differs" : "", difference)
    }
    let names = entityLines
    for (index, line) in names.enumerated() {
      table.add(index == 0 ? "entities" : "", line)
    }
    return ([store] + table.lines(indent: "  ")).joined(separator: "\n")
  }

  private var standing: String {
    guard let plan, let planVersion else { return state.styled }
    return "\(state.styled) (\(plan) ends at \(planVersion))"
  }

  private var size: String? {
    guard let sizeBytes else { return nil }
    var parts: [String] = []
    if let pageSizeBytes { parts.append("pages of \(pageSizeBytes) bytes") }
    if let journalMode { parts.append("journal mode \(journalMode)") }
    if let walBytes, walBytes > 0 { parts.append("\(Quantity.bytes(walBytes)) in the -wal file") }
    let size = Quantity.bytes(sizeBytes)
    return parts.isEmpty ? size : "\(size), \(parts.joined(separator: ", "))"
  }

  private var entityLines: [String] {
    var table = Table(.left, .right, .left)
    for entity in entities {
      if let rows = entity.rows {
        table.add(entity.name, "\(rows)", rows == 1 ? "row" : "rows")
      } else {
        table.add(entity.name)
      }
    }
    return table.lines()
  }
}

extension StoreState {
  /// The state's name, in the colour of how well it is.
  var styled: String {
    switch self {
    case .current: Style.good(rawValue)
    case .behind, .unversioned, .busy: Style.warning(rawValue)
    case .ahead, .unknown, .notAStore, .corrupt, .encrypted: Style.bad(rawValue)
    }
  }
}
