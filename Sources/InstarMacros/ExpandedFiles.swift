import Glibc

/// `InstarMacros-tool expand SOURCE EXPANDED…`: writes each source with its models expanded to the file after it.
///
/// A source that stays as it is has no such file.
struct ExpandedFiles {
  /// Sources and what they are written to, in turns.
  var paths: [String]

  /// Returns `false` if a file cannot be read or written. Then no expansion is complete, and the sources have to be
  /// compiled as they are; the compiler reports a source that it cannot read.
  func write() -> Bool {
    let pairs = stride(from: 0, to: paths.count - 1, by: 2).map { (paths[$0], paths[$0 + 1]) }
    let sources = pairs.compactMap { Self.content(of: $0.0) }
    guard sources.count == pairs.count else { return false }
    return zip(pairs, SourceExpansion.expansions(of: sources)).allSatisfy { pair, expansion in
      guard let expansion else { return unlink(pair.1) == 0 || errno == ENOENT }
      return Self.write(expansion, to: pair.1)
    }
  }

  private static func content(of path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 {
      content += buffer[..<count]
    }
    return ferror(file) == 0 ? content : nil
  }

  private static func write(_ content: [UInt8], to path: String) -> Bool {
    guard let file = fopen(path, "w") else { return false }
    let count = fwrite(content, 1, content.count, file)
    return fclose(file) == 0 && count == content.count
  }
}
