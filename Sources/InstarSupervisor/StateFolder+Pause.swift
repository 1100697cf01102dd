import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// The pause: one file, which outlasts the daemon.
extension StateFolder {
  private var pauseFile: String { path + "/pause.json" }

  /// Returns the order to start no run; `nil` without one.
  ///
  /// - Throws: `stateFolderFailed` where the file cannot be read: no run may be started then.
  public func pause() throws(InstarError) -> Manager.Pause? {
    guard access(pauseFile, F_OK) == 0 || errno != ENOENT else { return nil }
    do throws(InstarError) {
      return try WireCoder.message(Manager.Pause.self, from: try read(pauseFile))
    } catch {
      throw InstarError(
        .stateFolderFailed, "cannot read the pause '\(pauseFile)'", cause: error.cause,
        next: "to end the pause, run: instarctl resume")
    }
  }

  /// Records the order. It is on disk when this returns.
  public func setPause(_ pause: Manager.Pause) throws(InstarError) {
    try DurableFile.write(try WireCoder.line(pause), to: pauseFile, mode: 0o600, owner: owner)
  }

  /// Ends the pause. That is on disk when this returns.
  public func endPause() throws(InstarError) {
    try DurableFile.remove(pauseFile)
  }
}
