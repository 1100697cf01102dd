import Foundation
import InstarLinux
import InstarSchema

/// The systemd unit of instard on this machine, and its drop-ins.
enum ServiceUnit {
  static var isInstalled: Bool {
    ["/etc", "/usr/local/lib", "/usr/lib", "/lib"].contains {
      FilePath.exists("\($0)/systemd/system/instard.service")
    }
  }

  /// Whether systemd runs this machine (sd_booted(3)).
  static var hasManager: Bool { FilePath.exists("/run/systemd/system") }

  /// Returns `nil` where the file cannot be read.
  static func content(of file: String) -> String? {
    FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Writes the file; without content, removes it and its folder where that is empty then.
  ///
  /// - Parameter command: What root runs to write it.
  static func replace(
    _ file: String, by content: String?, command: String
  ) throws(InstarError) {
    do throws(InstarError) {
      if let content {
        _ = try OutputFile.replace(file, by: content, makesFolders: true)
      } else {
        try DurableFile.remove(file)
        rmdir(file.parentFolder)
      }
    } catch {
      throw InstarError(
        .outputFailed, error.what, cause: error.cause,
        next: geteuid() == 0 ? error.next : "run: sudo \(command)")
    }
  }

  /// Makes systemd read its units again.
  static func reloadManager() throws(InstarError) {
    let child = try ChildProcess.start(
      executable: "/usr/bin/systemctl", arguments: ["daemon-reload"],
      output: .captured(limitBytes: 1 << 14))
    let ended = try child.wait()
    guard ended == .exited(0) else {
      throw InstarError(
        .incompleteInstallation, "cannot reload the units of systemd",
        cause: "systemctl \(ended.map { "\($0)" } ?? "is gone"): "
          + child.capturedOutput.trimmingCharacters(in: .whitespacesAndNewlines),
        next: "run: systemctl daemon-reload")
    }
  }
}
