import InstarSchema

/// Which Swift type a property has.
enum SwiftType {
  /// The type of an attribute, without the module it comes from.
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
    // Bytes that only the app's own code can read.
    default: "Data"
    }
  }

  /// The module that a type, macro or protocol which generated source names comes from.
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
