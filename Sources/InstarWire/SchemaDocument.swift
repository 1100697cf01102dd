public import Foundation
public import InstarSchema

/// One version of a plan as a file for version control: the output of `instarctl schema export`.
///
/// Equal schemas give equal text: entities, properties and keys are ordered by name. A default that is computed for
/// each row, such as `UUID()` or `Date.now`, is written as zeros and listed in `computedDefaults`.
public struct SchemaDocument: Sendable, Codable, Hashable {
  /// The form of documents that this release writes and reads.
  public static let currentForm = 1

  /// The form of the document; a reader refuses any form but `currentForm`.
  public var instarSchema: Int
  /// The name of the plan.
  public var plan: String
  /// The name of the `VersionedSchema` type; left out if unknown.
  public var name: String?
  /// The schema, with its version.
  public var schema: Schema
  /// SHA-256 of the structure of a store of this version, in hexadecimal digits.
  public var fingerprint: String
  /// Attributes whose default is computed for each row, such as "Note.uid".
  public var computedDefaults: [String]

  /// Creates the document of one version of a plan.
  ///
  /// - Parameter again: The same version from a second worker: defaults that differ are computed ones.
  public init(_ version: VersionManifest, plan: String, again: VersionManifest) {
    instarSchema = Self.currentForm
    self.plan = plan
    name = version.name
    fingerprint = version.fingerprint
    var schema = version.schema.inStableOrder
    var computed: [String] = []
    for entity in schema.entities.indices {
      let other = again.schema.entity(named: schema.entities[entity].name)?.attributesByName ?? [:]
      for attribute in schema.entities[entity].attributes.indices {
        let here = schema.entities[entity].attributes[attribute]
        let initialValue = here.declaration.initialValue
        let isComputed = initialValue != other[here.name]?.declaration.initialValue
        if isComputed {
          schema.entities[entity].attributes[attribute].declaration.initialValue =
            initialValue?.cleared
        }
        if here.storedDefault != other[here.name]?.storedDefault {
          schema.entities[entity].attributes[attribute].storedDefault = here.storedDefault?.cleared
        } else if !isComputed {
          continue
        }
        computed.append("\(schema.entities[entity].name).\(here.name)")
      }
    }
    self.schema = schema
    computedDefaults = computed
  }

  /// The text of the file, with a newline at its end.
  public var text: String {
    get throws(InstarError) {
      do {
        return String(decoding: try WireCoder.encoder(pretty: true).encode(self), as: UTF8.self)
          + "\n"
      } catch {
        throw InstarError(
          .internalError, "cannot write a schema", cause: String(describing: error))
      }
    }
  }

  /// Reads the content of a file.
  ///
  /// - Parameter path: Named in the error.
  /// - Throws: `notASchema` if the file is not a document, or one of another form.
  public static func read(_ content: Data, path: String) throws(InstarError) -> SchemaDocument {
    func failure(_ cause: String, next: String) -> InstarError {
      InstarError(.notASchema, "cannot read schema '\(path)'", cause: cause, next: next)
    }
    struct Form: Decodable {
      var instarSchema: Int
    }
    let next = "pass a file that 'instarctl schema export' wrote"
    guard let form = try? JSONDecoder().decode(Form.self, from: content) else {
      throw failure("not a JSON object with the key 'instarSchema'", next: next)
    }
    guard form.instarSchema == currentForm else {
      throw failure(
        "the document has form \(form.instarSchema); this release reads form \(currentForm)",
        next: "use the release of Instar that wrote the document, or export the schema again")
    }
    do {
      return try JSONDecoder().decode(SchemaDocument.self, from: content)
    } catch {
      throw failure(Self.words(for: error), next: next)
    }
  }

  private static func words(for error: any Error) -> String {
    guard let error = error as? DecodingError else { return error.localizedDescription }
    let (context, problem): (DecodingError.Context, String) =
      switch error {
      case .keyNotFound(let key, let context): (context, "'\(key.stringValue)' is missing")
      case .typeMismatch(_, let context), .valueNotFound(_, let context),
        .dataCorrupted(let context):
        (context, context.debugDescription)
      @unknown default: (DecodingError.Context(codingPath: [], debugDescription: ""), "\(error)")
      }
    let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    return path.isEmpty ? problem : "\(path.joined(separator: ".")): \(problem)"
  }
}

extension Schema {
  /// The same schema with the properties of each entity ordered by name. The fields of a composite stay in their own
  /// order, which says how they are laid out.
  fileprivate var inStableOrder: Schema {
    var copy = self
    for index in copy.entities.indices {
      copy.entities[index].attributes = copy.entities[index].attributes.enumerated().sorted {
        let (left, right) = (
          $0.element.name.prefix { $0 != "." }, $1.element.name.prefix { $0 != "." }
        )
        return left == right ? $0.offset < $1.offset : left < right
      }.map(\.element)
      copy.entities[index].relationships.sort { $0.name < $1.name }
    }
    return copy
  }
}

extension AttributeValue {
  /// A zero or empty value of the same kind.
  fileprivate var cleared: AttributeValue {
    switch self {
    case .integer: .integer(0)
    case .real: .real(0)
    case .text: .text("")
    case .blob(let bytes): .blob(bytes.map { _ in 0 })
    }
  }
}
