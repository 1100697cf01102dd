public import Foundation
import InstarSchema

/// A fresh folder that is removed with everything in it when the value goes away.
public final class TemporaryFolder: Sendable {
  public let url: URL
  public var path: String { url.path }

  /// - Parameter mode: Of the folder; what the process's mask leaves by default.
  public init(mode: Int? = nil) throws {
    url = URL(filePath: NSTemporaryDirectory())
      .appending(path: "instar-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true,
      attributes: mode.map { [.posixPermissions: $0] })
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// The path of a file in the folder, whether it is there or not.
  public func path(_ name: String) -> String { url.appending(path: name).path }

  /// Makes a folder in the folder.
  public func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: path(name), withIntermediateDirectories: false)
  }

  /// Writes a file into the folder.
  ///
  /// - Returns: Its path.
  @discardableResult
  public func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }

  /// Writes a text file into the folder.
  ///
  /// - Returns: Its path.
  @discardableResult
  public func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
    let file = try file(name, text.utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    return file
  }

  /// The content of a text file in the folder.
  public func text(of name: String) throws -> String {
    try String(contentsOfFile: path(name), encoding: .utf8)
  }

  /// The state of a file, for comparing it before and after.
  public struct FileState: Sendable, Hashable {
    public var inode: UInt64
    public var mode: UInt32
    public var size: Int64
    public var modified: [Int]
    /// Of what is not a regular file, and of larger files than tests write, none.
    public var bytes: Data?
  }

  /// Everything in the folder, and in folders below it, by name, as it is now.
  public func contents() throws -> [String: FileState] {
    var result: [String: FileState] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
      let file = "\(path)/\(name)"
      var status = stat()
      guard lstat(file, &status) == 0 else { continue }
      let isSmall = status.isRegular && status.st_size <= 64 << 20
      result[name] = FileState(
        inode: UInt64(status.st_ino), mode: status.st_mode, size: Int64(status.st_size),
        modified: [status.st_mtim.tv_sec, status.st_mtim.tv_nsec],
        bytes: isSmall ? FileManager.default.contents(atPath: file) : nil)
    }
    return result
  }

  /// The names of what is in the folder, or in a folder below it, sorted.
  public func names(_ subfolder: String = "") -> [String] {
    let path = subfolder.isEmpty ? self.path : self.path(subfolder)
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
}
