public import Foundation
import InstarSchema

/// The stored form of a text with attributes.
///
/// A text without attributes is a JSON string. Any other text is an array of runs: each run's text is followed by an
/// object with its attributes by name: `["See ", {}, "here", {"NSLink": "https://example.org"}]`. A relative URL is
/// an array of itself and its base. All attributes of Foundation's scope and of Markdown are kept. Encoding a text
/// with an attribute of another scope throws, because its type would be unknown when the text is decoded.
extension AttributedString: @retroactive Codable {
  public init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self.init(text)
      return
    }
    self.init()
    var container = try decoder.unkeyedContainer()
    while !container.isAtEnd {
      let text = try container.decode(String.self)
      let attributes = try container.decode(StoredAttributes.self).attributes
      append(AttributedString(text, attributes: attributes))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    let isPlain = runs.allSatisfy { $0.attributes == AttributeContainer() }
    if isPlain {
      var container = encoder.singleValueContainer()
      try container.encode(String(String.UnicodeScalarView(unicodeScalars)))
      return
    }
    var container = encoder.unkeyedContainer()
    for run in runs {
      try container.encode(String(String.UnicodeScalarView(unicodeScalars[run.range])))
      try container.encode(StoredAttributes(attributes: run.attributes))
    }
  }
}

/// The attributes of one run.
private struct StoredAttributes: Codable {
  var attributes: AttributeContainer

  init(attributes: AttributeContainer) { self.attributes = attributes }

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    attributes = AttributeContainer()
    let container = try decoder.container(keyedBy: Key.self)
    for name in container.allKeys {
      guard let attribute = Self.known.first(where: { $0.name == name.stringValue }) else {
        throw DecodingError.dataCorruptedError(
          forKey: name, in: container,
          debugDescription: "'\(name.stringValue)' is not an attribute of Foundation")
      }
      try attribute.read(&attributes, name, container)
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    var rest = attributes
    for attribute in Self.known { try attribute.write(&rest, &container) }
    if rest == AttributeContainer() { return }
    throw InstarError(
      .invalidModel, "cannot store a text",
      cause: "its attribute \(Self.names(of: rest)) is not in Foundation's scope",
      next: "store the attribute in a property of its own, or remove it from the text")
  }

  private static func relativeURL(_ parts: [String]) -> URL? {
    guard let relative = parts.first, let base = parts.dropFirst().first else { return nil }
    return URL(string: relative, relativeTo: URL(string: base))
  }

  /// Returns the names of attributes of unknown types. Only the description of a container shows them: "{ name =
  /// value }".
  private static func names(of attributes: AttributeContainer) -> String {
    let lines = "\(attributes)".split(separator: "\n").dropFirst().dropLast()
    let names = lines.compactMap { line in
      line.firstRange(of: " = ").map { line[..<$0.lowerBound].trimmingPrefix("\t") }
    }
    return names.map { "'\($0)'" }.joined(separator: ", ")
  }

  /// An attribute whose values can be stored.
  private struct Known: Sendable {
    let name: String
    let read: @Sendable (inout AttributeContainer, Key, KeyedDecodingContainer<Key>) throws -> Void
    /// Encodes the value and removes it from the container.
    let write:
      @Sendable (inout AttributeContainer, inout KeyedEncodingContainer<Key>) throws -> Void

    init<Attribute: AttributedStringKey>(
      _ attribute: Attribute.Type
    ) where Attribute.Value: Codable & Sendable {
      name = attribute.name
      read = { attributes, key, container in
        if Attribute.Value.self == URL.self,
          let parts = try? container.decode([String].self, forKey: key)
        {
          attributes[attribute] = relativeURL(parts) as? Attribute.Value
        } else {
          attributes[attribute] = try container.decode(Attribute.Value.self, forKey: key)
        }
      }
      write = { attributes, container in
        guard let value = attributes[attribute] else { return }
        attributes[attribute] = nil
        let key = Key(stringValue: attribute.name)
        // JSON would store only the absolute form of a relative URL.
        if let url = value as? URL, let base = url.baseURL {
          try container.encode([url.relativeString, base.absoluteString], forKey: key)
        } else {
          try container.encode(value, forKey: key)
        }
      }
    }
  }

  private typealias Foundations = AttributeScopes.FoundationAttributes

  private static let known = [
    Known(Foundations.LinkAttribute.self), Known(Foundations.LanguageIdentifierAttribute.self),
    Known(Foundations.InlinePresentationIntentAttribute.self),
    Known(Foundations.PresentationIntentAttribute.self),
    Known(Foundations.AlternateDescriptionAttribute.self),
    Known(Foundations.ImageURLAttribute.self),
    Known(Foundations.PersonNameComponentAttribute.self),
    Known(Foundations.ReplacementIndexAttribute.self),
    Known(Foundations.NumberFormatAttributes.NumberPartAttribute.self),
    Known(Foundations.NumberFormatAttributes.SymbolAttribute.self),
    Known(Foundations.DateFieldAttribute.self), Known(Foundations.MeasurementAttribute.self),
    Known(Foundations.ByteCountAttribute.self), Known(Foundations.DurationFieldAttribute.self),
    Known(Foundations.WritingDirectionAttribute.self),
  ]
}
