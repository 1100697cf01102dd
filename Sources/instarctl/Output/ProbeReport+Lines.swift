import InstarSchema
import InstarWire

extension ProbeReport: CommandOutput {
  /// A paragraph; nothing where the error says all.
  var lines: [ConsoleLine] {
    guard error == nil else { return [] }
    var table = Table(.left, .left)
    table.add("state", stateLine)
    if let reason, !reason.isEmpty { table.add("reason", "\(reason)") }
    if let hold { table.add("hold", Style.warning("\(hold.sentence)")) }
    if let format { table.add("format", "\(format.rawValue)") }
    if format != nil { table.add("version", "\(version?.description ?? "none declared")") }
    for (index, tool) in (toolVersions ?? []).enumerated() {
      table.add(index == 0 ? "tool" : "", "\(tool)")
    }
    if let size { table.add("size", "\(size)") }
    if let externalFiles {
      let bytes = externalBytes.map { ", \(Quantity.bytes($0))" } ?? ""
      let values = externalFiles.counted("value in a file", "values in files")
      table.add("external", "\(values)\(bytes)")
    }
    if let replicator { table.add("replica", "\(replicator.name.rawValue): \(replicator.signs)") }
    if let uuid { table.add("uuid", "\(uuid)") }
    for (index, holder) in holders.prefix(Self.holderLimit).enumerated() {
      table.add(
        index == 0 ? "open in" : "",
        "\(holder.command) (process \(holder.pid)\(holder.unit.map { ", \($0)" } ?? ""))")
    }
    if holders.count > Self.holderLimit {
      table.add("", "and \(holders.count - Self.holderLimit) more")
    }
    if let nearestVersion { table.add("nearest", "\(nearestVersion)") }
    for (index, difference) in differences.enumerated() {
      table.add(index == 0 ? "differs" : "", "\(difference)")
    }
    let names = entityLines
    for (index, line) in names.enumerated() {
      table.add(index == 0 ? "entities" : "", line)
    }
    return ["\(store)"] + table.lines(indent: "  ")
  }

  private static let holderLimit = 10

  private var stateLine: ConsoleLine {
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

  private var entityLines: [ConsoleLine] {
    var table = Table(.left, .right, .left)
    for entity in entities {
      if let rows = entity.rows {
        table.add("\(entity.name)", "\(rows)", "\(rows.noun("row"))")
      } else {
        table.add("\(entity.name)")
      }
    }
    return table.lines()
  }
}

extension StoreState {
  /// The state's name, in the colour of how well it is.
  var styled: ConsoleLine {
    switch self {
    case .current: Style.good("\(text)")
    case .behind, .unversioned, .busy: Style.warning("\(text)")
    case .ahead, .unknown, .notAStore, .corrupt, .encrypted, .unreadable: Style.bad("\(text)")
    }
  }

  /// The state's name in texts; JSON has the value.
  var text: String { self == .notAStore ? "not a store" : rawValue }
}
