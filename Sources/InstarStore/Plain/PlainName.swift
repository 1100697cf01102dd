internal import GRDBSQLite

/// Names in SQL.
package enum PlainName {
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
    return "\""
      + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
      + "\""
  }

  /// The name that a Swift name has by convention: "createdAt" is `created_at`, "userID" is `user_id`.
  static func snakeCase(_ name: String) -> String {
    let characters = Array(name)
    var text = ""
    for (index, character) in characters.enumerated() {
      if character == "." {
        text += "_"
        continue
      }
      let next = index + 1 < characters.count ? characters[index + 1] : nil
      if character.isUppercase, index > 0, characters[index - 1] != ".",
        !characters[index - 1].isUppercase || next?.isLowercase == true,
        characters[index - 1] != "_"
      {
        text += "_"
      }
      text += character.lowercased()
    }
    return text
  }
}
