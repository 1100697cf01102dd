import InstarSchema
import InstarSource
import InstarWire

/// The answer of `schema diff`.
struct SchemaDiff: CommandOutput {
  struct Change: Encodable {
    var sentence: String
    var needsCustomStage: String?
    /// What to write in the models, because no code can give existing rows the value in time.
    var needsValue: String?
  }

  var from: LoadedSchema
  var to: LoadedSchema
  var changes: [Change]
  var notes: [String]
  /// `nil` where no stage is needed.
  @NullableValue var stage: SchemaComparison.Stage?
  /// The stage to paste.
  var source: String?

  /// Compares two schemas. What the tables of one cannot show is taken from the other.
  init(from old: LoadedSchema, to new: LoadedSchema) {
    (from, to) = (old, new)
    if old.origin == .tables, new.origin != .tables {
      from.schema = old.schema.aligned(to: new.schema)
    } else if new.origin == .tables, old.origin != .tables {
      to.schema = new.schema.aligned(to: old.schema)
    }
    let comparison = SchemaComparison(from: from.side, to: to.side)
    changes = comparison.changes.map { change in
      let cure = comparison.cureOfEmptyColumn(change)
      return Change(
        sentence: change.sentence,
        needsCustomStage: cure == nil ? change.reasonForCustomStage : nil,
        needsValue: cure)
    }
    notes = comparison.notes
    if !changes.isEmpty || old.version != new.version {
      stage = comparison.stage
      source = comparison.stageSource
    }
  }

  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(from.title) → \(to.title)"]
    if changes.isEmpty {
      lines.append(notes.isEmpty ? "  no difference" : "  no difference in a store")
    }
    for change in changes {
      lines.append("  \(change.sentence)")
      if let reason = change.needsCustomStage {
        lines.append("    needs a custom stage: \(reason)")
      }
      if let cure = change.needsValue {
        lines.append("    needs a value in existing rows before didMigrate runs: \(cure)")
      }
    }
    lines += notes.map { "  note: \($0)" }
    guard !changes.isEmpty, let stage, let source else { return lines }
    return lines + ["", "stage: \(stage.rawValue)", ""] + ConsoleLine.lines(of: source)
  }
}
