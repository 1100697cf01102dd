public import Foundation
public import InstarSchema

/// One version of a plan as a file to be kept under version control: what `instarctl schema export` writes.
///
/// Equal schemas give equal text: entities and properties stand in the order of their names, keys in theirs. A default
/// that differs each time it is asked for, such as `UUID()` or `Date.now`, is written as one that stays the same and is
/// listed in `computedDefaults`.
public struct SchemaDocument: Sendable, Codable, Hashable {
  /// The form of the document, the first of its kind.
  public static let currentForm = 1

  /// `currentForm`. A reader refuses documents of other forms.
  public var instarSchema: Int
  public var plan: String
  /// The name of the `VersionedSchema`; `nil` where it is not known.
  public var name: String?
  public var schema: Schema
  /// Of the structure of a store of this version.
  public var fingerprint: String
  /// "Note.uid": attributes whose default is made anew for each row.
  public var computedDefaults: [String]

  /// A document of one version of a plan.
  ///
  /// - Parameter again: The same version, asked for a second time, of another process: what differs is computed.
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
        guard here.storedDefault != other[here.name]?.storedDefault else { continue }
        computed.append("\(schema.entities[entity].name).\(here.name)")
        schema.entities[entity].attributes[attribute].storedDefault = here.storedDefault?.cleared
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
  /// - Throws: `notASchema` where it is no document, or one of a later form.
  public static func read(_ content: Data, path: String) throws(InstarError) -> SchemaDocument {
    func failure(_ cause: String, next: String) -> InstarError {
      InstarError(.notASchema, "cannot read schema '\(path)'", cause: cause, next: next)
    }
    struct Form: Decodable {
      var instarSchema: Int
    }
    let next = "give a file that 'instarctl schema export' wrote"
    guard let form = try? JSONDecoder().decode(Form.self, from: content) else {
      throw failure("it is no JSON object with the key 'instarSchema'", next: next)
    }
    guard form.instarSchema == currentForm else {
      throw failure(
        "it is of form \(form.instarSchema), and this release reads form \(currentForm)",
        next: "use the release of Instar that wrote it, or export it anew")
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
  /// A value of the same kind that says nothing.
  fileprivate var cleared: AttributeValue {
    switch self {
    case .integer: .integer(0)
    case .real: .real(0)
    case .text: .text("")
    case .blob(let bytes): .blob(bytes.map { _ in 0 })
    }
  }
}
