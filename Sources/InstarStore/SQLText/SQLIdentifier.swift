internal import GRDBSQLite
internal import InstarSchema

/// Names in SQL, and the Swift names derived from them.
package enum SQLIdentifier {
  /// Returns the name as SQL: bare where SQLite cannot read it as anything else, else quoted.
  package static func sql(_ name: String) -> String {
    func isLetter(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    let isBare =
      name.utf8.first.map(isLetter) == true
      && name.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
      && sqlite3_keyword_check(name, Int32(clamping: name.utf8.count)) == 0
    if isBare { return name }
    return name.quoted(by: UInt8(ascii: "\""))
  }

  /// Returns the name that SQL quotes, or has bare.
  package static func name(ofSQL sql: String) -> String {
    SQLToken.tokens(of: sql).first?.name ?? sql
  }
}

// MARK: - Names in Swift

extension SQLIdentifier {
  /// Returns a class name: `LibraryBook` for `library_book`.
  static func typeName(_ text: String) -> String {
    words(of: text).map(uppercasedFirst).joined()
  }

  /// Returns a property name: `createdAt` for `created_at`.
  static func propertyName(_ text: String) -> String {
    let words = words(of: text)
    let name =
      lowercasedFirst(words.first ?? "") + words.dropFirst().map(uppercasedFirst).joined()
    // `object.self` is the object.
    return name == "self" ? "itself" : name
  }

  /// Whether a table or column has the name that it gets when the class or property names none.
  static func isUsual(_ name: String, of swiftName: String) -> Bool {
    let isSpelled =
      swiftName.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
      && swiftName.first?.isNumber == false
    return isSpelled && Schema.snakeCase(swiftName) == name
  }

  /// Returns the plural of a name. A name that ends like a plural stays.
  static func plural(_ name: String) -> String {
    if name.hasSuffix("ss") || name.hasSuffix("x") || name.hasSuffix("ch") || name.hasSuffix("sh") {
      return name + "es"
    }
    if name.hasSuffix("s") { return name }
    let beforeLast = name.dropLast().last
    if name.hasSuffix("y"), let beforeLast, !"aeiou".contains(beforeLast) {
      return name.dropLast() + "ies"
    }
    return name + "s"
  }

  static func lowercasedFirst(_ word: String) -> String {
    word.prefix(1).lowercased() + word.dropFirst()
  }

  static func uppercasedFirst(_ word: String) -> String {
    word.prefix(1).uppercased() + word.dropFirst()
  }

  /// Words in upper case become lower case. A name that Swift cannot spell stays; the writer of the source handles it.
  private static func words(of text: String) -> [String] {
    let words = text.split { $0 == "_" || $0 == " " || $0 == "-" || $0 == "." }.map(String.init)
    guard !words.isEmpty else { return [text] }
    return words.map { word in
      word.contains(where: \.isLetter) && !word.contains(where: \.isLowercase)
        ? word.lowercased() : word
    }
  }
}

/// Hands out names, each once.
struct FreeNames {
  private var taken: Set<String> = []
  /// The next number of a name, because a store may have any number of them.
  private var numbers: [String: Int] = [:]

  func isTaken(_ name: String) -> Bool { taken.contains(name) }

  /// Returns and reserves the first of `name`, `name2`, `name3`… that is free.
  mutating func take(_ name: String) -> String {
    if taken.insert(name).inserted { return name }
    var number = numbers[name] ?? 2
    while !taken.insert("\(name)\(number)").inserted { number += 1 }
    numbers[name] = number + 1
    return "\(name)\(number)"
  }
}
