import Foundation
import Glibc
import InstarLinux
import InstarSchema

/// Files that a command writes because the user asked for them.
enum OutputFile {
  /// Writes a text.
  ///
  /// - Parameter makesFolders: Whether to create the folders that are missing.
  /// - Returns: Whether the file is new or its content changed.
  /// - Throws: `outputFailed`; an existing file is unchanged then.
  static func replace(
    _ path: String, by text: String, makesFolders: Bool = false
  ) throws(InstarError) -> Bool {
    let content = Data(text.utf8)
    try requireFile(path)
    if FileManager.default.contents(atPath: path) == content { return false }
    try write(content, to: path, mode: 0o644, makesFolders: makesFolders)
    return true
  }

  /// Replaces a file, or writes it.
  ///
  /// - Throws: `outputFailed`, also where the folder does not exist; an existing file is unchanged then.
  static func replace(
    _ path: String, by content: Data, mode: mode_t = 0o644
  ) throws(InstarError) {
    try write(content, to: path, mode: mode)
  }

  /// Writes a text to a new file.
  ///
  /// - Throws: `outputFailed`, also where the file exists.
  static func make(_ path: String, _ text: String) throws(InstarError) {
    guard !FilePath.exists(path) else {
      throw InstarError(
        .outputFailed, "cannot write '\(path)'", cause: "the file exists",
        next: "choose another file, or add --force to replace it")
    }
    try write(Data(text.utf8), to: path, mode: 0o644)
  }

  /// A file is replaced by a new one of its name. Of a device, a pipe or a link that would take away what others use.
  private static func requireFile(_ path: String) throws(InstarError) {
    guard let status = stat(of: path), !status.isRegular else { return }
    throw InstarError(
      .outputFailed, "cannot write '\(path)'", cause: "not a regular file",
      next: "name a new file, or an existing regular file")
  }

  private static func write(
    _ content: Data, to path: String, mode: mode_t, makesFolders: Bool = false
  ) throws(InstarError) {
    let folder = path.parentFolder
    try requireFile(path)
    let existing = firstExisting(folder)
    if let status = stat(following: existing), !status.isFolder {
      throw InstarError(
        .outputFailed, "cannot write '\(path)'", cause: "'\(existing)' is not a folder",
        next: "choose another path")
    }
    // A mistyped path would make a tree of folders.
    guard makesFolders || existing == folder else {
      throw InstarError(
        .outputFailed, "cannot write '\(path)'", cause: "the folder '\(folder)' does not exist",
        next: "check the path, or run: mkdir -p \(CommandText.quoted(folder))")
    }
    do {
      if makesFolders {
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: true)
      }
      try DurableFile.write(content, to: path, mode: mode)
    } catch {
      throw InstarError(
        .outputFailed, "cannot write '\(path)'",
        cause: InstarError.reason(of: error),
        next: (error as? InstarError)?.next
          ?? InstarError.adviceOnWriting(in: existing, InstarError.number(of: error)))
    }
  }

  /// The folder, or the last of those above it that exists.
  private static func firstExisting(_ folder: String) -> String {
    var folder = folder
    while folder != "/", folder != ".", !FilePath.exists(folder) {
      folder = folder.parentFolder
    }
    return folder
  }
}
