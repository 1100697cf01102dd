import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor

/// Paths as they are given on the command line.
enum FilePath {
  /// Returns the path from the root. Symbolic links are not resolved.
  static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    var relative = path[...]
    while relative.hasPrefix("./") { relative = relative.dropFirst(2).drop { $0 == "/" } }
    let folder = FileManager.default.currentDirectoryPath
    return (folder.hasSuffix("/") ? folder : folder + "/") + relative
  }

  /// Asks about stores, in all parts of a command: one that does not answer is waited for once.
  static let reader = FileReader(patience: .seconds(30))

  /// Returns the path of a store as the state folder spells it, as `ofStores` does.
  static func ofStore(_ path: String) -> String { ofStores([path]).first ?? absolute(path) }

  /// Returns the paths of many stores as the state folder spells them. A path without an answer of its file system
  /// keeps its links.
  static func ofStores(_ paths: [String]) -> [String] {
    StorePath.all(paths.map(absolute), by: reader).map(\.text)
  }

  /// Refuses a store whose file system does not answer about the backups beside it: a command that asked by itself
  /// would not end.
  ///
  /// - Parameter verb: What cannot be done without it, such as "hold".
  /// - Throws: `timeLimit`.
  static func requireAnswer(about store: String, to verb: String) throws(InstarError) {
    let folder = InstarFolder.path(besideStore: store)
    guard reader.answers(about: [folder], exists).isEmpty else { return }
    throw Supervisor.unansweredReading(store, within: reader.patience)
      .about("cannot \(verb) '\(store)'")
  }

  /// Calls the daemon with the paths of stores. It knows a store by the path of its watched folder, which may have a
  /// symbolic link in it.
  static func asInstardSpells<Reply>(
    _ stores: [String], call: ([String]) throws(InstarError) -> Reply
  ) throws(InstarError) -> Reply {
    do throws(InstarError) {
      return try call(stores.map(absolute))
    } catch  where [.missingStore, .notPermitted].contains(error.code) {
      return try call(ofStores(stores))
    }
  }

  static func ofPlugin(_ path: String) throws(InstarError) -> String {
    let plugin = absolute(path)
    guard exists(plugin) else {
      throw InstarError(
        .missingPlugin, "cannot read plugin '\(path)'", cause: "the file does not exist",
        next:
          "check the path, or build the plugin with: instarctl plugin build SOURCES -o '\(path)'")
    }
    return plugin
  }

  /// Returns the path of an existing folder, without symbolic links.
  ///
  /// - Parameter verb: What cannot be done without it, such as "test plugin".
  static func ofFolder(_ path: String, to verb: String) throws(InstarError) -> String {
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard exists, isFolder.boolValue, let real = RealPath.of(path) else {
      throw InstarError(
        .missingFile, "cannot \(verb) '\(path)'",
        cause: exists ? "not a folder" : "the folder does not exist", next: advice(on: path))
    }
    return real
  }

  /// Refuses the path of a store that does not exist.
  ///
  /// - Parameter verb: What cannot be done without it, such as "rehearse".
  /// - Throws: `missingStore`.
  static func requireStore(_ path: String, to verb: String) throws(InstarError) {
    guard !exists(path) else { return }
    throw InstarError(
      .missingStore, "cannot \(verb) '\(path)'", store: path, cause: "the file does not exist",
      next: advice(on: path))
  }

  /// Refuses what is not a regular file, and a file that this user cannot read.
  static func requireReadable(
    _ path: String, _ code: InstarError.Code, _ what: String
  ) throws(InstarError) {
    if let status = stat(following: path), !status.isRegular {
      throw InstarError(code, what, cause: "not a regular file", next: advice(on: path))
    }
    guard access(path, R_OK) == 0 else {
      throw InstarError(
        code, what, cause: String(cString: strerror(errno)),
        next:
          "run the command as a user who may read the file; run: ls -l \(CommandText.quoted(path))")
    }
  }

  /// The next step where a path does not name what it should.
  static func advice(on path: String) -> String {
    let folder = absolute(path).parentFolder
    return "check the path; run: ls -la \(CommandText.quoted(folder))"
  }

  /// Whether the path has, or may have, a file: also true for a dangling symbolic link, and in a folder that this user
  /// cannot enter.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 || ![ENOENT, ENOTDIR].contains(errno)
  }

  /// Returns the file that a symbolic link names in the end; `nil` for anything else.
  static func targetOfLink(_ path: String) -> String? {
    guard let status = stat(of: path), status.isLink else { return nil }
    return RealPath.of(path)
  }

  /// Parses a path from the command line.
  ///
  /// - Throws: `ValidationError`, a wrong usage, for an empty path, which would mean the current folder.
  static func typed(_ path: String) throws -> String {
    guard !path.isEmpty else { throw ValidationError("a path cannot be empty") }
    return path
  }
}
