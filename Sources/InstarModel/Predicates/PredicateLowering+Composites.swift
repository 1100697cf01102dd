import Foundation
import InstarSchema

/// Values in several columns, and enums that are stored by their raw value.
extension PredicateLowering {
  /// Returns the composite of the columns of a slot.
  func composite(_ columns: [String], _ entity: ModelEntity, _ slot: Int) -> CompositeTerm? {
    guard case .attribute(let kind) = entity.descriptor.properties[slot].kind, let form = kind.form,
      let leaves = form.leaves, leaves.count == columns.count
    else { return nil }
    let nilCondition = "(\(columns.map { "\($0) IS NULL" }.joined(separator: " AND ")))"
    var columns = columns
    // Rows from before the property was added have its initial value, in SQL as in memory.
    if !kind.isOptional,
      !entity.accepts(.composite(columns.map { _ in .null }), at: slot),
      case .composite(let initial)? = kind.defaultSlot(), initial.count == columns.count
    {
      columns = zip(columns, initial).map {
        "CASE WHEN \(nilCondition) THEN \(bind($1)) ELSE \($0) END"
      }
    }
    return CompositeTerm(
      leaves: zip(columns, leaves).map {
        SQLValue(
          sql: $0, kind: SQLValue.Kind($1.type), isOptional: $1.valueType is any OptionalType.Type)
      }, fields: form.fields, nilCondition: nilCondition)
  }

  /// Returns the composite of a constant; `nil` for a value that does not have several columns.
  func composite<Value: Codable>(of value: Value) -> CompositeTerm? {
    let form = CodableForm.of(Value.self)
    guard let leaves = form.leaves, case .composite(let slots)? = try? form.slot(of: value) else {
      return nil
    }
    return CompositeTerm(
      leaves: zip(slots, leaves).map { slot, leaf in
        // A decimal is bound as text, which only a column with NUMERIC affinity converts to a number.
        let sql = leaf.type == .decimal ? "CAST(\(bind(slot)) AS NUMERIC)" : bind(slot)
        return SQLValue(sql: sql, kind: SQLValue.Kind(leaf.type))
      },
      fields: form.fields, nilCondition: "0")
  }

  /// Returns whether a key path goes from a value to its raw value.
  ///
  /// A key path through a conformance cannot be compared with one of the type, so this tries it on values of the type.
  func isRawValue<Value, Part>(_ path: KeyPath<Value, Part>, of type: Value.Type) -> Bool {
    guard let raw = type as? any RawRepresentable.Type else { return false }
    return isRawValue(path, ofRaw: raw)
  }

  private func isRawValue<Raw: RawRepresentable>(_ path: AnyKeyPath, ofRaw type: Raw.Type) -> Bool {
    guard let path = path as? KeyPath<Raw, Raw.RawValue> else { return false }
    if let cases = EnumCases.all(of: type) {
      return cases.allSatisfy { Self.isEqual($0[keyPath: path], $0.rawValue) }
    }
    // The raw value of a struct is its only field.
    return MemoryLayout<Raw>.offset(of: path) == 0
      && MemoryLayout<Raw>.size == MemoryLayout<Raw.RawValue>.size
  }

  private static func isEqual<Value>(_ one: Value, _ two: Value) -> Bool {
    guard let one = one as? any Equatable else { return false }
    func compare<Left: Equatable>(_ left: Left) -> Bool { left == two as? Left }
    return compare(one)
  }
}

extension CodableForm {
  /// The fields of a struct; `nil` for other stored forms.
  var fields: [Field]? {
    if case .fields(let fields) = self { fields } else { nil }
  }
}
