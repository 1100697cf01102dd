public import Foundation

/// A fresh folder that is removed with everything in it when the value goes away.
public final class TemporaryFolder: Sendable {
  public let url: URL
  public var path: String { url.path }

  public init() throws {
    url = URL(filePath: NSTemporaryDirectory())
      .appending(path: "instar-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// The path of a file in the folder, whether it is there or not.
  public func path(_ name: String) -> String { url.appending(path: name).path }

  /// The names of what is in the folder, or in a folder below it, sorted.
  public func names(_ subfolder: String = "") -> [String] {
    let path = subfolder.isEmpty ? self.path : self.path(subfolder)
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
}
