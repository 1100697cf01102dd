import Foundation
import InstarSchema
package import InstarStore

/// How a `transform` stage computes properties of a model from those of the version before, row by row.
///
/// ```swift
/// Transform(NotesV1.Note.self, NotesV2.Note.self)
///   .set(\.words, from: \.body) { body in body.split(separator: " ").count }
///   .set(\.heading, from: \.title, \.pages) { title, pages in "\(title) (\(pages))" }
/// ```
///
/// Each assignment becomes a function that one UPDATE of the model's table calls for each row, in the order of the
/// keys. So no model is created, and the memory does not grow with the rows. The functions get the values of the
/// version before, also of properties that the stage removes, renames or changes in type.
///
/// SQLite checks a unique property after each row: new values must differ from the old ones of rows that come later.
///
/// A function must return the same value for the same arguments. An error that it throws ends the run, also after
/// thousands of rows: the store is unchanged, and the error names the property and the row.
public struct Transform<Old: PersistentModel, New: PersistentModel>: Sendable {
  fileprivate var assignments: [ModelTransform.Assignment] = []

  /// Computes nothing yet.
  public init(_ old: Old.Type, _ new: New.Type) {}

  /// Computes a property from properties of the version before.
  ///
  /// - Parameters:
  ///   - target: A stored property of the new version.
  ///   - sources: Stored properties of the version before.
  ///   - value: Returns the value of the property in one row. It is called on the thread of the stage.
  public func set<
    Value: PersistentAttribute & SendableMetatype,
    each Source: PersistentAttribute & SendableMetatype
  >(
    _ target: KeyPath<New, Value>, from sources: repeat KeyPath<Old, each Source>,
    by value: @escaping @Sendable (repeat each Source) throws -> Value
  ) -> Transform {
    var names: [String?] = []
    for source in repeat each sources { names.append(Old._modelDescriptor.attributeName(source)) }
    return adding(target, names) { [names] call in
      var index = ModelTransform.firstSource
      try call.set(value(repeat try call.next((each Source).self, &index, names)).slot)
    }
  }

  /// Computes a property from a text, of which the function gets the UTF-8 bytes without a copy.
  ///
  /// ```swift
  /// .set(\.spaces, fromUTF8: \.body) { bytes in
  ///   var count = 0
  ///   for index in bytes.indices where bytes[index] == 0x20 { count += 1 }
  ///   return count
  /// }
  /// ```
  public func set<Value: PersistentAttribute & SendableMetatype>(
    _ target: KeyPath<New, Value>, fromUTF8 source: KeyPath<Old, String>,
    by value: @escaping @Sendable (Span<UInt8>) throws -> Value
  ) -> Transform {
    let name = Old._modelDescriptor.attributeName(source)
    return adding(target, [name]) { call in
      let index = ModelTransform.firstSource
      guard call.storageClass(at: index) == .text else {
        throw TransformSourceError(source: name, type: String.self)
      }
      let bytes = call.utf8(at: index)
      try call.set(value(bytes.span).slot)
    }
  }

  /// Computes an optional property from an optional text, of which the function gets the UTF-8 bytes without a copy. A
  /// row without a text gets no value.
  public func set<Value: PersistentAttribute & SendableMetatype>(
    _ target: KeyPath<New, Value?>, fromUTF8 source: KeyPath<Old, String?>,
    by value: @escaping @Sendable (Span<UInt8>) throws -> Value?
  ) -> Transform {
    let name = Old._modelDescriptor.attributeName(source)
    return adding(target, [name]) { call in
      let index = ModelTransform.firstSource
      switch call.storageClass(at: index) {
      case .null: return
      case .text:
        let bytes = call.utf8(at: index)
        try call.set(value(bytes.span).slot)
      default: throw TransformSourceError(source: name, type: String.self)
      }
    }
  }

  /// Computes a property of any type that a model can store, as the other function does: an enum, a Codable struct, an
  /// array, a set or a dictionary.
  ///
  /// ```swift
  /// .set(\.kind, from: \.code) { code in code == 1 ? Kind.closed : .open }
  /// .set(\.words, from: \.body) { body in body.split(separator: " ").map(String.init) }
  /// ```
  ///
  /// For a property with several columns, such as a Codable struct, the function is called once for each of them.
  @_disfavoredOverload
  public func set<Value: SendableMetatype, each Source: SendableMetatype>(
    _ target: KeyPath<New, Value>, from sources: repeat KeyPath<Old, each Source>,
    by value: @escaping @Sendable (repeat each Source) throws -> Value
  ) -> Transform {
    let target = TransformedProperty(target, of: New._modelDescriptor)
    var properties: [TransformedProperty] = []
    for source in repeat each sources {
      properties.append(TransformedProperty(source, of: Old._modelDescriptor))
    }
    var copy = self
    for (index, column) in target.columns.enumerated() {
      copy.assignments.append(
        ModelTransform.Assignment(target: column, sources: properties.flatMap(\.columns)) {
          [properties] call, archives in
          var values = TransformSources(call, properties)
          let computed = try value(repeat try values.next((each Source).self))
          try call.set(target.slot(ofColumn: index, in: computed, archives: archives))
        })
    }
    return copy
  }

  private func adding<Value>(
    _ target: KeyPath<New, Value>, _ sources: [String?],
    _ function: @escaping @Sendable (FunctionContext) throws -> Void
  ) -> Transform {
    var copy = self
    copy.assignments.append(
      ModelTransform.Assignment(
        target: New._modelDescriptor.attributeName(target), sources: sources,
        function: { call, _ in try function(call) }))
    return copy
  }
}

/// Collects the transforms of a stage.
@resultBuilder
public enum TransformBuilder {
  /// One transform.
  public static func buildExpression<Old, New>(
    _ transform: Transform<Old, New>
  ) -> [ModelTransform] {
    [
      ModelTransform(
        old: Old._modelDescriptor.name, new: New._modelDescriptor.name,
        assignments: transform.assignments)
    ]
  }

  /// Transforms that were collected before.
  public static func buildExpression(_ transforms: [ModelTransform]) -> [ModelTransform] {
    transforms
  }

  /// All transforms of the closure.
  public static func buildBlock(_ transforms: [ModelTransform]...) -> [ModelTransform] {
    transforms.flatMap(\.self)
  }

  /// Those of an `if` without `else`.
  public static func buildOptional(_ transforms: [ModelTransform]?) -> [ModelTransform] {
    transforms ?? []
  }

  /// Those of the first branch of an `if` or `switch`.
  public static func buildEither(first transforms: [ModelTransform]) -> [ModelTransform] {
    transforms
  }

  /// Those of the other branch.
  public static func buildEither(second transforms: [ModelTransform]) -> [ModelTransform] {
    transforms
  }

  /// Those of all passes of a `for` loop.
  public static func buildArray(_ transforms: [[ModelTransform]]) -> [ModelTransform] {
    transforms.flatMap(\.self)
  }
}

/// A transform without the types of its models.
public struct ModelTransform: Sendable {
  /// The entity in the version before.
  package let old: String
  /// The entity in the new version.
  package let new: String
  package let assignments: [Assignment]

  /// The arguments of a function: the key of the row, then the sources.
  static let firstSource = 1

  package struct Assignment: Sendable {
    /// `nil` if the key path does not name a stored property.
    package let target: String?
    package let sources: [String?]
    /// Gets whether the store keeps collections as archives.
    package let function: @Sendable (FunctionContext, _ archives: Bool) throws -> Void
  }
}

/// A stored value is not of the type of its property.
struct TransformSourceError: Error, CustomStringConvertible {
  /// The property; `nil` if it is not a stored one.
  let source: String?
  let type: any Any.Type

  var description: String { "the stored value of '\(source ?? "")' is not a \(type)" }
}

/// A function returned NaN, which SQLite stores as NULL.
struct NotANumberError: Error, CustomStringConvertible {
  var description: String { "the new value is not a number (NaN), which SQLite cannot store" }
}

extension ModelDescriptor {
  /// Returns the name of the attribute that a key path names; `nil` for any other key path, and for an attribute whose
  /// stored form is not that of its type.
  fileprivate func attributeName(_ keyPath: AnyKeyPath) -> String? {
    guard let slot = slot(of: keyPath), case .attribute(let kind) = properties[slot].kind,
      kind.form == nil, kind.transformation == nil
    else { return nil }
    return properties[slot].name
  }
}

extension FunctionContext {
  fileprivate func next<Value: PersistentAttribute>(
    _ type: Value.Type, _ index: inout Int, _ names: [String?]
  ) throws -> Value {
    defer { index += 1 }
    guard let value = Value(slot: slot(at: index)) else {
      throw TransformSourceError(
        source: names[index - ModelTransform.firstSource], type: type)
    }
    return value
  }

  /// Returns an argument as models hold it.
  func slot(at index: Int) -> Slot {
    switch storageClass(at: index) {
    case .null: .null
    case .integer: .integer(integer(at: index))
    case .real: .real(real(at: index))
    case .text: .text(text(at: index))
    case .blob: .blob(data(at: index))
    }
  }

  /// Sets the result to the stored form of a value. Without a call it is NULL.
  fileprivate func set(_ slot: Slot) throws {
    if slot.isNotANumber { throw NotANumberError() }
    switch slot {
    case .integer(let integer): set(integer)
    case .real(let real): set(real)
    case .text(let text): set(text)
    case .blob(let data): set(data)
    case .null, .key, .model, .unloaded, .models, .composite: break
    }
  }
}
