/// Names in Swift source.
public enum SwiftName {
  /// Returns the name as a declaration or a member is written: a reserved word in backticks.
  public static func declared(_ name: String) -> String {
    reservedWords.contains(name) ? "`\(name)`" : name
  }

  /// Whether the name can be declared, with or without backticks. A member `self` cannot, because `object.self` is the
  /// object.
  public static func isIdentifier(_ name: String) -> Bool {
    guard let first = name.unicodeScalars.first else { return false }
    return (first == "_" || first.properties.isXIDStart)
      && name.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isXIDContinue }
      && name != "_" && name != "self"
  }

  /// Returns a name for a property: `folder id` and `folder_id` become `folderId`, `2nd` becomes `_2nd`.
  ///
  /// Words in upper case become lower case, so that `CUSTOMER_ID` becomes `customerId`.
  public static func property(_ text: String) -> String {
    let words = words(of: text)
    guard let first = words.first else { return "_property" }
    return startingAsIdentifier(
      lowercasedFirst(first) + words.dropFirst().map(uppercasedFirst).joined())
  }

  /// Returns a name for a type: `folder_tags` becomes `FolderTags`.
  public static func type(_ text: String) -> String {
    let words = words(of: text)
    guard !words.isEmpty else { return "_Type" }
    return startingAsIdentifier(words.map(uppercasedFirst).joined())
  }

  /// Returns the first of `name`, `name2`, `name3`… that is free.
  public static func free(_ name: String, among taken: Set<String>) -> String {
    guard taken.contains(name) else { return name }
    var number = 2
    while taken.contains("\(name)\(number)") { number += 1 }
    return "\(name)\(number)"
  }

  private static func words(of text: String) -> [String] {
    var words: [String] = []
    var current = ""
    for scalar in text.unicodeScalars {
      if scalar != "_" && scalar.properties.isXIDContinue {
        current.unicodeScalars.append(scalar)
      } else if !current.isEmpty {
        words.append(current)
        current = ""
      }
    }
    if !current.isEmpty { words.append(current) }
    return words.map { word in
      word.allSatisfy { !$0.isLowercase } && word.contains(where: \.isLetter)
        ? word.lowercased() : word
    }
  }

  private static func lowercasedFirst(_ word: String) -> String {
    word.prefix(1).lowercased() + word.dropFirst()
  }

  private static func uppercasedFirst(_ word: String) -> String {
    word.prefix(1).uppercased() + word.dropFirst()
  }

  private static func startingAsIdentifier(_ name: String) -> String {
    isIdentifier(name) ? name : "_" + name
  }

  /// Words that need backticks as names (The Swift Programming Language, "Keywords and Punctuation"), including those
  /// that are reserved in some places only: backticks do no harm there.
  private static let reservedWords: Set<String> = [
    "Any", "Protocol", "Self", "Type", "actor", "as", "associatedtype", "async", "await", "break",
    "case", "catch", "class", "continue", "default", "defer", "deinit", "do", "else", "enum",
    "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import",
    "in",
    "indirect", "infix", "init", "inout", "internal", "is", "lazy", "let", "macro", "mutating",
    "nil",
    "nonisolated", "open", "operator", "optional", "package", "postfix", "precedencegroup",
    "prefix",
    "private", "protocol", "public", "repeat", "required", "rethrows", "return", "self", "set",
    "some", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true", "try",
    "typealias", "unowned", "var", "weak", "where", "while", "willSet", "didSet", "get",
  ]
}
