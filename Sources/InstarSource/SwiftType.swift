import InstarSchema

/// The Swift types of properties.
enum SwiftType {
  /// Returns the type of an attribute, without its module.
  static func name(of type: Schema.AttributeType) -> String {
    switch type {
    case .bool: "Bool"
    case .int16: "Int16"
    case .int32: "Int32"
    case .int64: "Int"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .date: "Date"
    case .uuid: "UUID"
    case .url: "URL"
    // Bytes that only the app's code can decode.
    default: "Data"
    }
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
