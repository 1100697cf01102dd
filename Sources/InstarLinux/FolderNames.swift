import Glibc
public import InstarSchema

/// Finds files by their names.
///
/// Every run looks for a few names in `.instar/`, which has two files for each store beside it: the others never become
/// a `String`.
public enum FolderNames {
  /// Returns the names in a folder that begin and end so, in no order. Names that are not UTF-8 are left out.
  ///
  /// - Throws: `unreadableStore` where the folder cannot be listed.
  public static func all(
    in folder: String, prefix: String = "", suffix: String = ""
  ) throws(InstarError) -> [String] {
    guard let stream = opendir(folder) else { throw unreadable(folder, errno) }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      if let name = name(of: entry, prefix: prefix, suffix: suffix) { names.append(name) }
      // `readdir` returns nil at the end and on a failure; only a failure sets `errno`.
      errno = 0
    }
    guard errno == 0 else { throw unreadable(folder, errno) }
    return names
  }

  private static func name(
    of entry: UnsafeMutablePointer<dirent>, prefix: String, suffix: String
  ) -> String? {
    withUnsafeBytes(of: &entry.pointee.d_name) { field in
      let name = field.prefix { $0 != 0 }
      guard name.count >= prefix.utf8.count + suffix.utf8.count,
        name.starts(with: prefix.utf8), name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8),
        !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8)
      else { return nil }
      return String(validating: name, as: UTF8.self)
    }
  }

  private static func unreadable(_ folder: String, _ number: Int32) -> InstarError {
    .systemFailure(
      "cannot list '\(folder)'", number, code: .unreadableStore, next: "run: ls -ld '\(folder)'")
  }
}
