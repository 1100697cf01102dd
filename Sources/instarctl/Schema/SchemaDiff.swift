import InstarSchema
import InstarSource
import InstarWire

/// The answer of `schema diff`.
struct SchemaDiff {
  var old: LoadedSchema
  var new: LoadedSchema
  var comparison: SchemaComparison

  /// Compares two schemas. What the tables of one cannot show is taken from the other.
  init(from old: LoadedSchema, to new: LoadedSchema) {
    var (old, new) = (old, new)
    if old.origin == .tables, new.origin != .tables {
      old.schema = old.schema.aligned(to: new.schema)
    } else if new.origin == .tables, old.origin != .tables {
      new.schema = new.schema.aligned(to: old.schema)
    }
    self.old = old
    self.new = new
    comparison = SchemaComparison(from: old.side, to: new.side)
  }

  /// `nil` where no stage is needed.
  var stage: SchemaComparison.Stage? {
    comparison.changes.isEmpty && old.version == new.version ? nil : comparison.stage
  }

  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(old.title) → \(new.title)"]
    guard !comparison.changes.isEmpty else {
      lines.append(
        comparison.notes.isEmpty ? "  no difference" : "  no difference in a store")
      lines += comparison.notes.map { "  note: \($0)" }
      return lines
    }
    for change in comparison.changes {
      lines.append("  \(change.sentence)")
      if let reason = change.needsCustomStage {
        lines.append("    needs a custom stage: \(reason)")
      }
    }
    lines += comparison.notes.map { "  note: \($0)" }
    lines += ["", "stage: \(comparison.stage.rawValue)", ""]
    return lines + ConsoleLine.lines(of: comparison.stageSource)
  }
}

extension SchemaDiff: Answer {
  private struct Change: Encodable {
    var sentence: String
    var needsCustomStage: String?
  }

  private enum CodingKeys: String, CodingKey {
    case from, to, changes, notes, stage, source
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(old, forKey: .from)
    try container.encode(new, forKey: .to)
    try container.encode(
      comparison.changes.map {
        Change(sentence: $0.sentence, needsCustomStage: $0.needsCustomStage)
      }, forKey: .changes)
    try container.encode(comparison.notes, forKey: .notes)
    try container.encode(stage, forKey: .stage)
    try container.encodeIfPresent(stage.map { _ in comparison.stageSource }, forKey: .source)
  }
}
