import Foundation
import InstarLinux
import InstarSchema

/// The unit of the daemon on this machine, and the files that add to it.
enum ServiceUnit {
  static var isInstalled: Bool {
    ["/etc", "/usr/local/lib", "/usr/lib", "/lib"].contains {
      FilePath.exists("\($0)/systemd/system/instard.service")
    }
  }

  /// Whether systemd runs this machine (sd_booted(3)).
  static var hasManager: Bool { FilePath.exists("/run/systemd/system") }

  /// `nil` where there is no such file.
  static func content(of file: String) -> String? {
    FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Writes the file, or removes it together with its folder where nothing else is in that.
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
        next: geteuid() == 0 ? nil : "run it as root, or look at it with --print")
    }
  }

  /// Has systemd read its units anew.
  static func reloadManager() throws(InstarError) {
    let child = try ChildProcess.start(
      executable: "/usr/bin/systemctl", arguments: ["daemon-reload"],
      output: .captured(limitBytes: 1 << 14))
    let ended = try child.wait()
    guard ended == .exited(0) else {
      throw InstarError(
        .incompleteInstallation, "cannot have systemd read its units",
        cause: "systemctl \(ended.map { "\($0)" } ?? "is gone"): "
          + child.capturedOutput.trimmingCharacters(in: .whitespacesAndNewlines),
        next: "systemctl daemon-reload")
    }
  }
}
