import Foundation
import Glibc
public import InstarSchema

/// The ELF note that `#InstarPlugin` writes into a plugin, read without loading the plugin.
///
/// The file is not trusted: every offset and length is checked against its size. Layout: elf(5); note "Instar", type 1;
/// its descriptor is the ABI number (32 bits), then lines of UTF-8, padded with NUL: the Swift version of the SDK that
/// expanded the macro, then the names of the plans.
public struct PluginNote: Sendable, Hashable {
  /// The ABI number of plugins that this version of Instar can load.
  public static let supportedABI: UInt32 = 5

  public var abi: UInt32
  public var swiftVersion: String
  public var planNames: [String]

  /// Reads the note of a plugin with any ABI number.
  ///
  /// - Throws: `untrustedPlugin` if this user may not read the file; `notAPlugin` if it is not a shared library for
  ///   this machine, or has no note.
  public static func read(path: String) throws(InstarError) -> PluginNote {
    // O_NONBLOCK: opening a FIFO must not block.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      let reason = errno
      guard reason == EACCES else {
        throw ELFFile.failure(path, String(cString: strerror(reason)))
      }
      let user = ProcessIdentity.label(of: ProcessIdentity.ownUser)
      // Where even the file's mode cannot be read, a folder above it is closed.
      var status = stat()
      let isInClosedFolder = lstat(path, &status) != 0
      throw InstarError(
        .untrustedPlugin, "cannot use '\(path)' as a plugin",
        cause: "user \(user) has no permission to read the file",
        next: isInClosedFolder
          ? "move the file to a folder that this user can enter; to see which cannot be entered, run as root: "
            + "namei -l \(CommandText.quoted(path))"
          : "run: chmod a+r \(CommandText.quoted(path))")
    }
    defer { close(descriptor) }
    let file = try ELFFile(path: path, descriptor: descriptor)
    guard let descriptor = try file.note(name: "Instar", type: 1) else {
      throw file.failure(
        "the file has no Instar note",
        next: "add #InstarPlugin(YourPlan.self) to a source file of the plugin"
      )
    }
    guard let abi = descriptor.word(at: 0) else {
      throw file.failure("the Instar note is too short")
    }
    let text = descriptor.bytes.dropFirst(4).prefix { $0 != 0 }
    guard let text = String(validating: text, as: UTF8.self) else {
      throw file.failure("the Instar note is not UTF-8")
    }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: true).map(String.init)
    guard let swiftVersion = lines.first else { throw file.failure("the Instar note is empty") }
    return PluginNote(abi: abi, swiftVersion: swiftVersion, planNames: Array(lines.dropFirst()))
  }

  /// - Throws: `wrongABI` with both numbers.
  public func requireSupportedABI(path: String) throws(InstarError) {
    guard abi == Self.supportedABI else {
      throw InstarError(
        .wrongABI, "cannot use plugin '\(path)'",
        cause:
          "built for plugin ABI \(abi); this version of Instar loads ABI \(Self.supportedABI)",
        next: "build the plugin with this version's 'instarctl plugin build'")
    }
  }
}
