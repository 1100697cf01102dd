extension String {
  /// The folder of the file that a path names, by the path alone: "/srv" of "/srv/a.store" and of "/srv/a.store/", "."
  /// of a name alone, "/" of "/".
  package var parentFolder: String {
    let name = startOfLastName
    guard name != startIndex else { return "." }
    let end = utf8[..<name].lastIndex { $0 != String.slash }.map(utf8.index(after:))
    return end.map { String(self[..<$0]) } ?? "/"
  }

  /// The last name of a path, without slashes at its end; empty for "/".
  package var lastName: String {
    String(decoding: utf8[startOfLastName...].prefix { $0 != String.slash }, as: UTF8.self)
  }

  /// The path with another last name: of a file in the same folder.
  package func sibling(_ name: String) -> String { self[..<startOfLastName] + name }

  /// Whether an absolute path is somewhere below a folder, by the paths alone. A folder is not below itself.
  package func isBelow(_ folder: String) -> Bool {
    folder == "/" ? hasPrefix("/") && self != "/" : hasPrefix(folder + "/")
  }

  /// By bytes, as the kernel reads a path: a slash and a combining mark are one `Character`.
  private var startOfLastName: Index {
    guard let end = utf8.lastIndex(where: { $0 != String.slash }) else { return endIndex }
    return utf8[...end].lastIndex(of: String.slash).map(utf8.index(after:)) ?? startIndex
  }

  private static let slash = UInt8(ascii: "/")
}
