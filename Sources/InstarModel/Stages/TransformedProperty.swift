import Foundation
import InstarSchema
import InstarStore

/// A property of any type that a transform reads or sets, with its columns.
struct TransformedProperty: @unchecked Sendable {
  // Immutable. It is unchecked only because metatypes and the closures that describe a property are not Sendable.

  private let name: String
  /// The attribute of each column; one that is `nil` if the key path does not name a stored property.
  let columns: [String?]
  private let kind: Schema.PropertyMetadata.AttributeKind?
  /// Whether it is a collection that some stores keep as an archive.
  private let isArchivable: Bool

  init(_ keyPath: AnyKeyPath, of descriptor: ModelDescriptor) {
    guard let slot = descriptor.slot(of: keyPath),
      case .attribute(let kind) = descriptor.properties[slot].kind, kind.transformation == nil
    else {
      (name, columns, kind, isArchivable) = ("", [nil], nil, false)
      return
    }
    let name = descriptor.properties[slot].name
    self.name = name
    self.kind = kind
    isArchivable =
      descriptor.properties[slot].collectionType.map(ArchivedCollection.canArchive) ?? false
    columns = kind.leaves.map { $0.map { "\(name).\($0.name)" } } ?? [name]
  }

  /// Returns the value in the columns of one row.
  ///
  /// - Throws: `TransformSourceError` if it is not of the type.
  func value<Value>(in stored: [Slot], as type: Value.Type) throws -> Value {
    var slot = stored.first ?? .null
    if kind?.leaves != nil {
      let isAbsent = kind?.isOptional == true && stored.allSatisfy(\.isNull)
      slot = isAbsent ? .null : .composite(stored)
    }
    let value =
      kind?.form == nil
      ? CodableForm.plainValue(of: slot, as: type) : kind?.value(of: slot, as: type)
    guard let value else {
      throw TransformSourceError(source: name, type: type)
    }
    return value
  }

  /// Returns what a value stores in one of the columns.
  ///
  /// - Parameter archives: Whether the store keeps collections as archives.
  /// - Throws: The error of the type's encoding.
  func slot<Value>(ofColumn index: Int, in value: Value, archives: Bool) throws -> Slot {
    guard kind?.form != nil else { return CodableForm.slot(ofPlain: value) ?? .null }
    if archives, isArchivable, let archive = try ArchivedCollection.archive(of: value) {
      return .blob(archive)
    }
    guard let slot = try kind?.slot(of: value) else { return .null }
    guard case .composite(let leaves) = slot else { return slot }
    return leaves.indices.contains(index) ? leaves[index] : .null
  }
}

/// Reads the arguments of one call as the values of properties, one after the other.
struct TransformSources {
  private let call: FunctionContext
  private let properties: [TransformedProperty]
  private var property = 0
  private var argument = ModelTransform.firstSource

  init(_ call: FunctionContext, _ properties: [TransformedProperty]) {
    self.call = call
    self.properties = properties
  }

  mutating func next<Value>(_ type: Value.Type) throws -> Value {
    defer { property += 1 }
    let columns = argument..<(argument + properties[property].columns.count)
    argument = columns.upperBound
    return try properties[property].value(in: columns.map { call.slot(at: $0) }, as: type)
  }
}
