import InstarSchema
import InstarStore

extension ModelSave {
  /// A row of the store.
  struct Row: Hashable {
    let table: String
    let key: Int64

    init(_ table: String, _ key: Int64) {
      self.table = table
      self.key = key
    }

    init(_ change: Change) { self.init(change.entity.layout.table, change.storage.key) }
  }

  /// The changed and new rows of a save, in the order in which they are written: the changed ones, then the new ones.
  ///
  /// SQLite compares unique values after each statement, not at the commit. So it may refuse a row whose value another
  /// row of the save still has. Only then the order changes: the save looks up which rows have the values, writes these
  /// first, and tries again. Rows that exchange values cannot all follow each other. One of them is parked: it gets a
  /// value in between, and is written a second time with its own.
  ///
  /// States of a write:
  /// - `pending`: not written.
  /// - `waiting`: SQLite refused it, and rows with its unique values are written first.
  /// - `done`: written.
  /// - `superseded`: a later write sets all columns of the row, so this one is left out.
  ///
  /// Invariants:
  /// - A save without such a conflict runs one statement for each row, and looks up nothing.
  /// - Each refusal starts a pending write, parks a row, or ends the save with SQLite's error. A parked row no longer
  ///   has the value, so no refusal parks it again for that. So the loop ends, after a number of statements that grows
  ///   with the number of refused rows.
  /// - The writes that are waiting are those on the stack. If the value of a row on the stack is needed, the rows
  ///   exchange values.
  /// - Two writes of one row keep their order.
  /// - The columns of a parked row that have a value in between are written later, in the same transaction.
  /// - A primary key that is the key of the row in the context (see `RowKey`) never changes, so nothing waits for it.
  struct RowWrites {
    private let save: ModelSave
    private let statements: SaveStatements
    private var writes: [Write]
    private let changedCount: Int
    /// Whether SQLite may undo a refused statement in part only.
    private let hasConflictFail: Bool
    /// The writes of rows that exist; `nil` until SQLite refuses a row.
    private var writesOfRows: [Row: [Int]]?
    /// The files with large values that no row references any more.
    private(set) var releasedFiles: Set<String> = []

    private struct Write {
      enum Kind {
        case update(SlotSet)
        /// All columns of the row of another model.
        case taking
        case insertion
      }

      enum State {
        case pending, waiting, done, superseded
      }

      let change: Change
      var kind: Kind
      var state = State.pending
      /// Whether `beforeWrite` was called.
      var isAnnounced = false

      /// Whether it may change the values of a unique group.
      func changes(_ group: ModelEntity.UniqueGroup) -> Bool {
        !freeSlots(of: group).isEmpty
      }

      /// The slots of a unique group that it writes, without those of the row's key.
      func freeSlots(of group: ModelEntity.UniqueGroup) -> [Int] {
        // The row that it takes a value from may be of another class, with other slots.
        guard let own = change.entity.uniqueGroups.first(where: { $0.name == group.name })
        else { return [] }
        return own.slots.filter { slot in
          if case .update(let slots) = kind, !slots.contains(slot) { return false }
          return !change.entity.isPartOfKey(slot)
        }
      }
    }

    init(of save: ModelSave, _ changed: [Change], _ new: [NewRow], _ session: SQLSession) throws {
      self.save = save
      hasConflictFail = try save.store.hasConflictFail(session)
      statements = SaveStatements(session)
      changedCount = changed.count
      writes =
        changed.map { Write(change: $0, kind: .update($0.storage.changedSlots)) }
        + new.map { Write(change: $0.change, kind: $0.isTaken ? .taking : .insertion) }
      if new.contains(where: \.isTaken) { supersede() }
    }

    /// Leaves out the writes of a row before one that sets all columns.
    private mutating func supersede() {
      var earlier: [Row: [Int]] = [:]
      for index in writes.indices {
        let row = Row(writes[index].change)
        if case .taking = writes[index].kind {
          for other in earlier[row] ?? [] {
            if case .insertion = writes[other].kind { writes[index].kind = .insertion }
            writes[other].state = .superseded
          }
        }
        earlier[row, default: []].append(index)
      }
    }

    // MARK: Writing

    /// Writes the changed rows with references to some tables before rows of these are deleted. If a row takes a unique
    /// value of a deleted one, only these references are written, and the rest follows later.
    mutating func writeReferences(to tables: Set<String>) throws {
      if tables.isEmpty { return }
      try explainingRefusals { writes in try writes.writeOnlyReferences(to: tables) }
    }

    private mutating func writeOnlyReferences(to tables: Set<String>) throws {
      for index in 0..<changedCount where writes[index].state != .done {
        let early = save.slotsOfReferences(to: tables, writes[index].change)
        if early.isEmpty { continue }
        guard writes[index].state == .pending else {
          try write(early, of: index)
          continue
        }
        do {
          try write(index)
        } catch is Refusal {
          try write(early, of: index)
        }
      }
    }

    /// Writes some slots of a changed row, whose other slots follow later.
    private mutating func write(_ early: SlotSet, of index: Int) throws {
      let state = writes[index].state
      let later = writes[index].change.storage.changedSlots.subtracting(early)
      writes[index].kind = .update(early)
      writes[index].state = .pending
      try write(index)
      writes[index].kind = .update(later)
      writes[index].state = later.isEmpty ? .done : state
    }

    /// Writes all rows that are not written yet.
    mutating func writeAll() throws {
      try explainingRefusals { writes in
        for index in writes.writes.indices { try writes.write(index) }
      }
    }

    /// SQLite refused a row whose unique value another row keeps.
    private struct Refusal: Error {
      let index: Int
      let error: InstarError
    }

    private mutating func explainingRefusals(
      _ write: (inout RowWrites) throws -> Void
    ) throws {
      do {
        try write(&self)
      } catch let refusal as Refusal {
        throw try explained(refusal)
      }
    }

    /// Returns the error with the property and the row that has its value, unless an index of the app's refuses it.
    private func explained(_ refusal: Refusal) throws -> any Error {
      let change = writes[refusal.index].change
      let what = "cannot save \(change.storage.title)"
      for group in change.entity.uniqueGroups {
        guard let row = try otherRow(with: group, of: refusal.index) else { continue }
        let names = group.slots.map { "'\(change.entity.descriptor.properties[$0].name)'" }
        let other = "\(change.entity.layout.root) \(row.key)"
        return SwiftDataError(
          .modelValidationFailure,
          InstarError(
            .duplicateUniqueValues, what,
            cause: names.count == 1
              ? "\(names[0]) is unique, and \(other) has the same value"
              : "\(names.joined(separator: ", ")) are unique together, and \(other) has the same values",
            next: "set another value, or change or delete \(other) in the same save"))
      }
      return refusal.error.about(what)
    }

    /// Writes a row, and before it those that free its unique values if SQLite refuses it.
    private mutating func write(_ index: Int) throws {
      guard writes[index].state == .pending, try attempt(index) != nil else { return }
      // Iterative, because a chain of rows can be long enough to overflow the stack.
      var stack = [index]
      do {
        while let index = stack.last {
          let isOpen = writes[index].state == .pending || writes[index].state == .waiting
          guard isOpen, let refusal = try attempt(index) else {
            stack.removeLast()
            continue
          }
          writes[index].state = .waiting
          guard let earlier = try writesBefore(index) else {
            throw Refusal(index: index, error: refusal)
          }
          stack += earlier.reversed()
        }
      } catch {
        // `writeReferences` may go on without it.
        for index in stack where writes[index].state == .waiting { writes[index].state = .pending }
        throw error
      }
    }

    /// Writes a row.
    ///
    /// - Returns: SQLite's error if another row has a unique value of it. The row is then as before.
    private mutating func attempt(_ index: Int) throws -> InstarError? {
      let change = writes[index].change
      if !writes[index].isAnnounced {
        try save.beforeWrite?()
        writes[index].isAnnounced = true
        if case .taking = writes[index].kind {
          releasedFiles.formUnion(try save.filesReleased(by: [change], [], statements.session))
        }
      }
      do {
        try undoingRefusal {
          switch writes[index].kind {
          case .update(let slots): try save.update(change, slots, statements)
          case .taking: try save.takeRow(change, statements)
          case .insertion: try save.insert(change, statements)
          }
        }
      } catch let error as InstarError
        // An index of the app's may undo the whole transaction (ON CONFLICT ROLLBACK).
        where error.isUniqueViolation && statements.session.isInTransaction
      {
        return error
      }
      writes[index].state = .done
      return nil
    }

    /// Runs a statement, and if SQLite refuses it undoes what it has done, with the files that it has made.
    private func undoingRefusal(_ body: () throws -> Void) throws {
      if hasConflictFail {
        try statements.session.transaction(body)
      } else {
        try statements.session.removingFilesAfterErrors(body)
      }
    }

    /// Notes each written row in the store's history, once.
    func note(in history: inout SaveHistory?) throws {
      for write in writes where write.state != .superseded {
        let (key, entity) = (write.change.storage.key, write.change.entity)
        switch write.kind {
        case .update:
          let slots = write.change.storage.changedSlots
          try history?.noteUpdate(of: key, entity, slots: slots.contains)
        case .taking: try history?.noteUpdate(of: key, entity) { _ in true }
        case .insertion: try history?.noteInsertion(of: key, entity)
        }
      }
      try history?.finish()
    }

    // MARK: Order

    /// Returns the writes of rows that free unique values of a row. Parks those of these rows that wait for this one.
    ///
    /// - Returns: `nil` if the save frees none of its values.
    private mutating func writesBefore(_ index: Int) throws -> [Int]? {
      var earlier: [Int] = []
      var isFreed = false
      for group in writes[index].change.entity.uniqueGroups {
        guard let row = try otherRow(with: group, of: index) else { continue }
        let open = openWrites(of: row)
        guard let changing = open.first(where: { writes[$0].changes(group) }) else { continue }
        isFreed = true
        if open.contains(where: { writes[$0].state == .waiting }) {
          try park(changing, group, for: index)
        } else {
          earlier += open
        }
      }
      return isFreed ? earlier : nil
    }

    private func otherRow(with group: ModelEntity.UniqueGroup, of index: Int) throws -> Row? {
      let change = writes[index].change
      guard let key = try save.key(of: group, change, statements.session) else { return nil }
      return key == change.storage.key ? nil : Row(change.entity.layout.table, key)
    }

    private mutating func openWrites(of row: Row) -> [Int] {
      let known = writesOfRows ?? findWrites()
      writesOfRows = known
      return (known[row] ?? []).filter {
        writes[$0].state == .pending || writes[$0].state == .waiting
      }
    }

    private func findWrites() -> [Row: [Int]] {
      var found: [Row: [Int]] = [:]
      for index in writes.indices {
        if case .insertion = writes[index].kind { continue }
        found[Row(writes[index].change), default: []].append(index)
      }
      return found
    }

    // MARK: Exchanged values

    /// Gives a row a value that no other row has until it is written. The table may have checks and triggers, so there
    /// are several to try. NULL comes last: rows that reference the value follow it (ON UPDATE CASCADE), but do not
    /// come back from NULL.
    ///
    /// - Parameter refused: The row that needs the value. Whether it is free is read: a trigger may undo the change,
    ///   and the save would try without end.
    private func park(
      _ index: Int, _ group: ModelEntity.UniqueGroup, for refused: Int
    ) throws {
      let (change, entity) = (writes[index].change, writes[index].change.entity)
      let slots = writes[index].freeSlots(of: group)
      // A required reference comes last, because it would reference no row.
      let ordered =
        slots.filter { entity.slots[$0].isOptional }
        + slots.filter { entity.attributeSlots.contains($0) } + slots
      for slot in ordered {
        guard let column = entity.columnsBySlot[slot].first?.name else { continue }
        let values =
          Self.valuesBetween(column, entity.layout.table)
          + (entity.slots[slot].isOptional ? ["NULL"] : [])
        for value in values where try set(column, value, change) {
          if try otherRow(with: group, of: refused) != Row(change) { return }
        }
      }
      throw SwiftDataError.validation(
        "cannot save \(change.storage.title)",
        "the model exchanges unique values with other models, and the constraints or triggers of table \(entity.layout.table) allow no value in between: \(group.name)",
        next: "give one of the models another unique value, save, and then set the right ones")
    }

    /// Returns expressions for values that hardly any row of a table has in a column, of the column's own type.
    private static func valuesBetween(_ column: String, _ table: String) -> [String] {
      func value(number: String, text: String) -> String {
        "CASE typeof(\(column)) WHEN 'text' THEN \(text) "
          + "WHEN 'blob' THEN randomblob(max(16, length(\(column)))) ELSE \(number) END"
      }
      let random = "hex(randomblob(16))"
      return [
        value(number: "random() & 2147483647", text: random),
        value(
          number: "(SELECT max(\(column)) FROM \(table)) + 1",
          text: "substr(\(random), 1, length(\(column)))"),
        value(
          number: "(SELECT min(\(column)) FROM \(table)) - 1", text: "\(column) || \(random)"),
      ]
    }

    /// - Returns: Whether the constraints of the table allow the value.
    private func set(_ column: String, _ value: String, _ change: Change) throws -> Bool {
      let layout = change.entity.layout
      do {
        try undoingRefusal {
          try save.run(
            "UPDATE \(layout.table) AS t0 SET \(column) = \(value) "
              + "WHERE \(layout.key.condition("t0", equals: "?1"))",
            [change.storage.key], statements.session)
        }
        return true
      } catch let error as InstarError
        where error.isConstraintViolation && statements.session.isInTransaction
      {
        return false
      }
    }
  }
}

extension ModelEntity {
  /// Whether a slot is part of the key by which the context knows a row.
  func isPartOfKey(_ slot: Int) -> Bool { slot == keySlot || keySlots.contains(slot) }
}

extension SlotStorage {
  fileprivate var isOptional: Bool {
    switch self {
    case .attribute(_, let isOptional), .composite(_, let isOptional),
      .toOne(_, _, let isOptional, _):
      isOptional
    case .toMany, .none: true
    }
  }
}
