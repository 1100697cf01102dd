public import InstarSchema

/// One SQL statement with its arguments. Values are interpolated into it as parameters, never as text:
///
/// ```swift
/// let name = "it's \"x\""
/// let statement: SQL = "UPDATE note SET title = \(name) WHERE pages > \(10)"
/// // UPDATE note SET title = ? WHERE pages > ?
/// ```
///
/// So a value cannot change what a statement does. Names of tables and columns are part of the text and cannot be
/// interpolated.
///
/// A value is bound as models hold it in a store that Core Data reads: a date as seconds since 2001-01-01 UTC, a UUID
/// as 16 bytes, a number, a text. In ordinary tables, give a date or a UUID the form that the column has.
public struct SQL: Sendable, Hashable, ExpressibleByStringInterpolation, CustomStringConvertible {
  /// The statement, with a question mark for each argument.
  public let text: String
  /// In the order of the parameters; `nil` for NULL.
  public let arguments: [AttributeValue?]

  /// Creates a statement without arguments.
  public init(stringLiteral text: String) {
    self.text = text
    arguments = []
  }

  /// Creates a statement whose interpolated values are its arguments.
  public init(stringInterpolation: StringInterpolation) {
    text = stringInterpolation.text
    arguments = stringInterpolation.arguments
  }

  /// The text, without the arguments.
  public var description: String { text }

  /// Collects the text and the arguments of a statement.
  public struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""
    fileprivate var arguments: [AttributeValue?] = []

    /// Begins an empty statement.
    public init(literalCapacity: Int, interpolationCount: Int) {}

    /// Adds SQL.
    public mutating func appendLiteral(_ literal: String) { text += literal }

    /// Adds a parameter for a value.
    public mutating func appendInterpolation<Value: PersistentAttribute>(_ value: Value) {
      text += "?"
      arguments.append(value.slot.attributeValue)
    }

    /// Adds a parameter for the raw value.
    public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
    where Value.RawValue: PersistentAttribute {
      appendInterpolation(value.rawValue)
    }

    /// Adds a parameter for each value, in parentheses: `WHERE title IN \(list: titles)`.
    public mutating func appendInterpolation<Value: PersistentAttribute>(list values: [Value]) {
      text += "(" + values.map { _ in "?" }.joined(separator: ", ") + ")"
      arguments += values.map(\.slot.attributeValue)
    }
  }
}
