import InstarSchema
import InstarWire

extension ProbeReport {
  /// The report as a person reads it: a paragraph.
  var text: String {
    var table = Table(.left, .left)
    table.add("state", standing)
    if let reason, !reason.isEmpty { table.add("reason", reason.printable) }
    if let format { table.add("format", format.rawValue) }
    if format != nil { table.add("version", version?.description ?? "none declared") }
    for (index, tool) in (toolVersions ?? []).enumerated() {
      table.add(index == 0 ? "tool" : "", tool.description.printable)
    }
    if let size { table.add("size", size) }
    if let externalFiles {
      let bytes = externalBytes.map { ", \(Quantity.bytes($0))" } ?? ""
      table.add("values", "\(externalFiles) in files beside it\(bytes)")
    }
    if let uuid { table.add("uuid", uuid.printable) }
    for (index, holder) in holders.prefix(Self.holderLimit).enumerated() {
      table.add(
        index == 0 ? "open in" : "", "\(holder.command.printable) (process \(holder.pid))")
    }
    if holders.count > Self.holderLimit {
      table.add("", "and \(holders.count - Self.holderLimit) more")
    }
    if let nearestVersion { table.add("nearest", nearestVersion.description) }
    for (index, difference) in differences.enumerated() {
      table.add(index == 0 ? "differs" : "", difference.printable)
    }
    let names = entityLines
    for (index, line) in names.enumerated() {
      table.add(index == 0 ? "entities" : "", line)
    }
    return ([store.printable] + table.lines(indent: "  ")).joined(separator: "\n")
  }

  private static let holderLimit = 10

  private var standing: String {
    guard let plan, let planVersion else { return state.styled }
    return "\(state.styled) (\(plan) ends at \(planVersion))"
  }

  private var size: String? {
    guard let sizeBytes else { return nil }
    var parts: [String] = []
    if let pageSizeBytes { parts.append("pages of \(pageSizeBytes) bytes") }
    if let journalMode { parts.append("journal mode \(journalMode)") }
    if let walBytes, walBytes > 0 {
      parts.append("\(Quantity.bytes(walBytes)) waiting in the -wal file")
    }
    if let journalBytes { parts.append("\(Quantity.bytes(journalBytes)) in the -journal file") }
    let size = Quantity.bytes(sizeBytes)
    return parts.isEmpty ? size : "\(size), \(parts.joined(separator: ", "))"
  }

  private var entityLines: [String] {
    var table = Table(.left, .right, .left)
    for entity in entities {
      if let rows = entity.rows {
        table.add(entity.name.printable, "\(rows)", rows == 1 ? "row" : "rows")
      } else {
        table.add(entity.name.printable)
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
    case .ahead, .unknown, .notAStore, .corrupt, .encrypted, .unreadable: Style.bad(rawValue)
    }
  }
}
