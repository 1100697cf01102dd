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
  static func replace(_ file: String, by content: String?) throws(InstarError) {
    let folder = (file as NSString).deletingLastPathComponent
    do {
      if let content {
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        try DurableFile.write(Data(content.utf8), to: file, mode: 0o644)
      } else {
        try DurableFile.remove(file)
        rmdir(folder)
      }
    } catch {
      throw InstarError(
        .incompleteInstallation, "cannot write '\(file)'",
        cause: (error as? InstarError)?.cause ?? error.localizedDescription,
        next: geteuid() == 0 ? nil : "run: sudo instarctl config apply")
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
