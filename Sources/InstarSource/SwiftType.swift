import InstarSchema

/// The Swift types of properties.
enum SwiftType {
  /// Returns the type of an attribute, without its module.
  static func name(of type: Schema.AttributeType) -> String {
    // Bytes that only the app's code can decode.
    type == .codable ? Schema.AttributeType.data.swiftName : type.swiftName
  }

  /// Returns the module of a type, macro or protocol that generated source names.
  static func module(of name: String) -> String {
    switch name {
    case "Bool", "Int", "Int16", "Int32", "Double", "Float", "String", "Codable", "Hashable":
      "Swift"
    case "Decimal", "Date", "Data", "UUID", "URL": "Foundation"
    case "Schema": "InstarSchema"
    default: "InstarModel"
    }
  }
}
