internal import GRDBSQLite
internal import InstarSchema

/// Names in SQL.
package enum SQLIdentifier {
  /// The name as it stands in SQL: bare where SQLite takes it for nothing else, else in quotes.
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
}

// MARK: - Names in Swift

extension SQLIdentifier {
  /// A name for a class: `library_book` becomes `LibraryBook`.
  static func typeName(_ text: String) -> String {
    words(of: text).map(uppercasedFirst).joined()
  }

  /// A name for a property: `created_at` becomes `createdAt`.
  static func propertyName(_ text: String) -> String {
    let words = words(of: text)
    let name =
      lowercasedFirst(words.first ?? "") + words.dropFirst().map(uppercasedFirst).joined()
    // `object.self` is the object.
    return name == "self" ? "itself" : name
  }

  /// Whether a table or column has the very name that it would have where the class or property says none.
  static func isUsual(_ name: String, of swiftName: String) -> Bool {
    let isSpelled =
      swiftName.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
      && swiftName.first?.isNumber == false
    return isSpelled && Schema.snakeCase(swiftName) == name
  }

  /// A name for several of what one is called so. One that ends like a plural stays.
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

  /// Words in upper case throughout are taken in lower case. A name that Swift cannot spell stays, for whoever writes source.
  private static func words(of text: String) -> [String] {
    let words = text.split { $0 == "_" || $0 == " " || $0 == "-" || $0 == "." }.map(String.init)
    guard !words.isEmpty else { return [text] }
    return words.map { word in
      word.contains(where: \.isLetter) && !word.contains(where: \.isLowercase)
        ? word.lowercased() : word
    }
  }
}

/// Gives names of which no two are the same.
struct FreeNames {
  private var taken: Set<String> = []
  /// The number that the next one of a name gets: a store may have any number of them.
  private var numbers: [String: Int] = [:]

  func isTaken(_ name: String) -> Bool { taken.contains(name) }

  /// The first of `name`, `name2`, `name3`… that is not taken, and is so from now on.
  mutating func take(_ name: String) -> String {
    if taken.insert(name).inserted { return name }
    var number = numbers[name] ?? 2
    while !taken.insert("\(name)\(number)").inserted { number += 1 }
    numbers[name] = number + 1
    return "\(name)\(number)"
  }
}
