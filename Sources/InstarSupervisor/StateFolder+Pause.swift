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
    var status = stat()
    guard lstat(pauseFile, &status) == 0 || errno != ENOENT else { return nil }
    func unreadable(_ cause: String) -> InstarError {
      InstarError(
        .stateFolderFailed, "cannot read the pause '\(pauseFile)'", cause: cause,
        next: "to end the pause, run: instarctl resume")
    }
    guard status.isRegular else { throw unreadable("not a regular file") }
    let line: Data
    do throws(InstarError) {
      line = try read(pauseFile)
    } catch {
      throw unreadable(error.cause)
    }
    guard let pause = try? WireCoder.message(Manager.Pause.self, from: line) else {
      throw unreadable("the file is not what 'instarctl pause' writes")
    }
    return pause
  }

  /// Records the order. It is on disk when this returns.
  public func setPause(_ pause: Manager.Pause) throws(InstarError) {
    try DurableFile.write(try WireCoder.line(pause), to: pauseFile, mode: 0o600, owner: owner)
  }

  /// Ends the pause. That is on disk when this returns.
  public func endPause() throws(InstarError) {
    guard stat(of: pauseFile)?.isFolder != true else {
      throw InstarError(
        .stateFolderFailed, "cannot end the pause", cause: "'\(pauseFile)' is a folder",
        next: "run: rm -r \(CommandText.quoted(pauseFile))")
    }
    try DurableFile.remove(pauseFile, owner: owner)
  }
}
