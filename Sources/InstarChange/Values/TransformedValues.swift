import InstarSchema
package import InstarStore

/// Computes properties of an entity from those of the version before: the functions of one transform of a plan.
package struct EntityTransform: Sendable {
  /// In the version before.
  package let old: String
  package let new: String
  package let assignments: [Assignment]

  package init(old: String, new: String, assignments: [Assignment]) {
    self.old = old
    self.new = new
    self.assignments = assignments
  }

  /// Computes one property.
  package struct Assignment: Sendable {
    /// `nil` if it is not a stored property.
    package let target: String?
    /// In the version before; `nil` if it is not a stored property.
    package let sources: [String?]
    /// Gets the key of the row, then the sources as models hold them; and whether the store keeps collections as
    /// archives.
    package let function: @Sendable (FunctionContext, _ archives: Bool) throws -> Void

    package init(
      target: String?, sources: [String?],
      function: @escaping @Sendable (FunctionContext, _ archives: Bool) throws -> Void
    ) {
      self.target = target
      self.sources = sources
      self.function = function
    }
  }
}

/// The values that the transforms of a stage compute, over its change of schema.
///
/// One UPDATE for each entity, after the change, calls the functions with the columns of the new table, if the change
/// keeps the columns of all sources. Else the functions run before the change, and their results wait in a temporary
/// table with the keys of the rows: the stage removes a source, changes its type, or fills its empty values; a
/// required column of an ordinary table needs its values when it is made; or the UPDATE of an earlier transform
/// writes a source.
struct TransformedValues {
  fileprivate struct Part {
    let old: EntityLayout
    let new: EntityLayout
    let table: String
    var assignments: [Assignment] = []

    var carried: [Assignment] { assignments.filter(\.isCarried) }
  }

  fileprivate struct Assignment {
    let property: String
    let column: StoredColumn
    let function: RowFunction
    /// The columns of the sources: in the old table if the results are carried, else in the new one.
    let sources: [StoredColumn]
    let isCarried: Bool
    /// The column of the temporary table.
    let name: String
  }

  private var parts: [Part] = []
  private var usesOrdinaryTables = false

  /// None.
  init() {}

  /// - Throws: `invalidPlan` for a transform that the two versions do not allow, with the property.
  init(
    _ transforms: [EntityTransform], _ stage: SchemaStage, _ difference: SchemaDifference
  ) throws(InstarError) {
    usesOrdinaryTables = stage.to.layout.enforcesForeignKeys
    let check = TransformCheck(stage: stage, difference: difference)
    var names = FunctionNames()
    for (index, transform) in transforms.enumerated() {
      let pair = try check.layouts(of: transform)
      var part = Part(old: pair.old, new: pair.new, table: "instar_transformed_\(index + 1)")
      for assignment in transform.assignments {
        let (property, column, isRequired) = try check.target(of: assignment, pair.new, transform)
        let others = parts.filter { $0.sharesRows(with: part) } + [part]
        guard !others.contains(where: { $0.sets(column) }) else {
          throw check.failure("\(transform.new).\(property) is set twice", "set it once")
        }
        let old = try assignment.sources.map { source throws(InstarError) in
          try check.source(source, of: property, pair.old, transform)
        }
        let kept = assignment.sources.compactMap {
          $0.flatMap { check.keptColumn(of: $0, pair.old, pair.new) }
        }
        let isOverwritten = parts.contains {
          $0.new.table == part.new.table && kept.contains(where: $0.sets)
        }
        let isCarried =
          kept.count < old.count || isOverwritten
          || isRequired && check.needsValueAtOnce(property, pair.new)
        if isCarried, !pair.keepsKeys {
          throw check.failure(
            "this stage changes the primary key of \(transform.new), so the values of "
              + "\(transform.new).\(property) cannot be matched to its rows",
            "change the key in a stage of its own, before or after this one")
        }
        part.assignments.append(
          Assignment(
            property: property, column: column,
            function: RowFunction(
              names.free("instar_set_\(transform.new)_\(property.replacing(".", with: "_"))"),
              argumentCount: old.count + 1,
              body: Self.explaining(
                assignment, property, transform.new,
                archives: stage.to.layout.archivesNewCollections)),
            sources: isCarried ? old : kept, isCarried: isCarried,
            name: "instar_v\(part.assignments.count + 1)"))
      }
      if !part.assignments.isEmpty { parts.append(part) }
    }
  }

  /// Adds the property and the row to the errors of a function.
  private static func explaining(
    _ assignment: EntityTransform.Assignment, _ property: String, _ entity: String, archives: Bool
  ) -> @Sendable (FunctionContext) throws -> Void {
    { call in
      do {
        try assignment.function(call, archives)
      } catch {
        throw InstarError(
          .stageFailed, "cannot compute \(entity).\(property) of row \(call.text(at: 0))",
          cause: "the transform threw: \(ThrownError(error).reason)",
          next: "fix the plan, build the plugin again and install it")
      }
    }
  }

  /// Whether a property of the new version gets its values from a transform.
  func sets(_ property: String, of entity: String) -> Bool {
    parts.contains { $0.new.name == entity && $0.sets(property) }
  }

  /// The value that a row gets in a column of a table that is rebuilt, as SQL; `nil` if the column gets it later.
  func value(of column: String, inTable table: String) -> String? {
    for part in parts where part.new.table == table {
      if let found = part.carried.first(where: { $0.column.name == column }) {
        return part.carriedValue(of: found)
      }
    }
    return nil
  }

  // MARK: Steps

  /// Registers the functions, and those that read and write the columns of ordinary tables.
  func register(_ session: SQLSession) throws(InstarError) {
    if parts.isEmpty { return }
    if usesOrdinaryTables { try session.useOrdinaryTables() }
    for assignment in parts.flatMap(\.assignments) { try session.register(assignment.function) }
  }

  /// The steps before the change of schema.
  var stepsBefore: [ChangeStep] { parts.flatMap(\.stepsBefore) }

  /// The steps after the change of schema.
  var stepsAfter: [ChangeStep] { parts.flatMap(\.stepsAfter) }

  /// Runs the steps on a store that is discarded after an error.
  ///
  /// - Throws: The first error of a function, with the property and the row; the error of a statement.
  func run(_ steps: [ChangeStep], _ session: SQLSession) throws {
    if steps.isEmpty { return }
    do {
      try session.transactionWithoutRollback {
        for step in steps { try session.run(step.sql, on: step.table, callsPlan: true) }
      }
    } catch {
      throw parts.flatMap(\.assignments).lazy.compactMap(\.function.firstError).first ?? error
    }
  }
}

/// The names of functions that are in use. SQLite compares them without case.
private struct FunctionNames {
  private var used: Set<String> = []

  /// Returns a name, with a number where it is in use.
  mutating func free(_ name: String) -> String {
    var (free, number) = (name, 1)
    while !used.insert(free.lowercased()).inserted {
      number += 1
      free = "\(name)_\(number)"
    }
    return free
  }
}

extension TransformedValues.Part {
  func sets(_ property: String) -> Bool { assignments.contains { $0.property == property } }

  func sets(_ column: StoredColumn) -> Bool {
    assignments.contains { $0.column.name == column.name }
  }

  /// Whether the entities are the same, or one inherits from the other.
  func sharesRows(with other: TransformedValues.Part) -> Bool {
    new.table == other.new.table && !Set(new.numbers).isDisjoint(with: other.new.numbers)
  }

  /// Names for the columns of the key in the temporary table.
  private var keys: [String] { new.key.columns.indices.map { "instar_k\($0 + 1)" } }

  private var rowOfTable: String {
    zip(keys, new.key.columns).map { "\($0) = +\(new.table).\($1)" }.joined(separator: " AND ")
  }

  func carriedValue(of assignment: TransformedValues.Assignment) -> String {
    let value = "(SELECT \(assignment.name) FROM temp.\(table) WHERE \(rowOfTable))"
    return assignment.column.encoding.map { "\($0.writeFunction)(\(value))" } ?? value
  }

  private func call(_ assignment: TransformedValues.Assignment, _ row: String, _ key: RowKey)
    -> String
  {
    let arguments =
      ["\(row).\(key.columns[0])"] + assignment.sources.map { $0.reading.sql(row) }
    return "\(SQLIdentifier.sql(assignment.function.name))(\(arguments.joined(separator: ", ")))"
  }

  private func step(_ sql: String, _ comment: String, _ assignments: [TransformedValues.Assignment])
    -> ChangeStep
  {
    let one = assignments.count == 1 ? assignments[0] : nil
    return ChangeStep(
      sql, comment, .conversion, rowChange: .writes, table: SQLIdentifier.name(ofSQL: new.table),
      column: one.map { SQLIdentifier.name(ofSQL: $0.column.name) }, entity: new.name,
      property: one?.property, reason: "computes \(list(assignments)) by code of the plan")
  }

  private func list(_ assignments: [TransformedValues.Assignment]) -> String {
    assignments.map { "\(new.name).\($0.property)" }.joined(separator: ", ")
  }

  fileprivate var stepsBefore: [ChangeStep] {
    let carried = carried
    if carried.isEmpty { return [] }
    let isRowID = old.key.isRowID && new.key.isRowID
    let values = carried.map(\.name).joined(separator: ", ")
    let list = keys.joined(separator: ", ")
    let columns =
      isRowID
      ? "\(list) INTEGER PRIMARY KEY, \(values)" : "\(list), \(values), PRIMARY KEY (\(list))"
    let selected =
      old.key.columns.map { "\(old.table).\($0)" } + carried.map { call($0, old.table, old.key) }
    let rows = old.rowCondition.map { " WHERE \($0)" } ?? ""
    return [
      step(
        "CREATE TEMP TABLE \(table) (\(columns))\(isRowID ? "" : " WITHOUT ROWID")",
        "creates a table for the values of \(self.list(carried))", carried),
      step(
        "INSERT INTO temp.\(table) SELECT \(selected.joined(separator: ", ")) "
          + "FROM \(old.table)\(rows)", "computes \(self.list(carried))", carried),
    ]
  }

  fileprivate var stepsAfter: [ChangeStep] {
    let values = assignments.map { assignment in
      let value =
        assignment.isCarried
        ? carriedValue(of: assignment) : written(call(assignment, new.table, new.key), assignment)
      return "\(assignment.column.name) = \(value)"
    }
    var conditions = [new.rowCondition].compactMap(\.self)
    if !carried.isEmpty, new.rowCondition != nil {
      // The table may have rows that were of another entity.
      conditions.append("EXISTS (SELECT 1 FROM temp.\(table) WHERE \(rowOfTable))")
    }
    let rows = conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))"
    let update = step(
      "UPDATE \(new.table) SET \(values.joined(separator: ", "))\(rows)",
      carried.isEmpty ? "computes \(list(assignments))" : "writes \(list(assignments))",
      assignments)
    if carried.isEmpty { return [update] }
    return [
      update, step("DROP TABLE temp.\(table)", "drops the table of these values", assignments),
    ]
  }

  private func written(_ value: String, _ assignment: TransformedValues.Assignment) -> String {
    assignment.column.encoding.map { "\($0.writeFunction)(\(value))" } ?? value
  }
}
