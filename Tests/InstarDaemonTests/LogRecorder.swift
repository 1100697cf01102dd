import Foundation
import Logging
import Synchronization

/// Keeps what is logged.
struct LogRecorder: LogHandler {
  final class Lines: Sendable {
    let all = Mutex<[(identifier: String, event: LogEvent)]>([])
  }
  var identifier: String
  var lines: Lines
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  init(identifier: String, lines: Lines) {
    self.identifier = identifier
    self.lines = lines
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }
  func log(event: LogEvent) { lines.all.withLock { $0.append((identifier, event)) } }

  /// Where the programs are that the tests belong to.
  static var buildFolder: String {
    let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return ((program ?? "") as NSString).deletingLastPathComponent
  }

  static var sourceFolder: String {
    URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
  }
}
