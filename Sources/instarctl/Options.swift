import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor

/// How a command answers.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Answer in JSON: one object a line on standard output.")
  var json = false

  /// Writes one answer: an object, or lines with its error on standard error.
  func write(_ answer: some Answer) {
    if json {
      Console.write(json: answer)
    } else {
      Console.write(answer.lines)
      if let error = answer.error { Console.note(error) }
    }
  }

  /// Writes an error that is about the command as a whole.
  func report(_ error: InstarError) {
    if json { Console.write(json: ["error": error]) }
    Console.note(error)
  }
}

/// The plugins that may carry the plan of a store.
struct PluginOptions: ParsableArguments {
  @Option(
    name: .customLong("plugin"),
    help: ArgumentHelp(
      "A plugin whose plan may know the store. Can be given several times.",
      valueName: "file.so"),
    completion: .file(extensions: ["so"]), transform: FilePath.typed)
  var files: [String] = []

  /// Absolute, each looked up.
  ///
  /// A plugin that is named is the caller's choice, wherever it lies. Root is told where others
  /// could have changed it.
  func paths() throws(InstarError) -> [String] {
    var paths: [String] = []
    for file in files {
      let path = try FilePath.ofPlugin(file)
      if geteuid() == 0 {
        do throws(InstarError) {
          try PluginTrust(owners: [0]).require(path)
        } catch {
          Console.note("warning: \(error.cause); using the plugin nevertheless")
        }
      }
      paths.append(path)
    }
    return paths
  }
}

/// What an unversioned store shall be taken for.
struct AdoptionOptions: ParsableArguments {
  @Option(
    name: .customLong("adopt"),
    help: ArgumentHelp(
      "Take an unversioned or unknown store for this version of the plan. Where the store has more "
        + "than that version, or lacks an index of it, that has to be confirmed; where it lacks "
        + "more, it is refused.",
      valueName: "version"),
    transform: Schema.Version.typed)
  var version: Schema.Version?
}

extension Schema.Version {
  /// A version as it was typed on the command line.
  ///
  /// - Throws: `ValidationError`, a wrong usage.
  static func typed(_ text: String) throws -> Schema.Version {
    guard let version = Schema.Version(text) else {
      throw ValidationError("'\(text)' is not a version such as 1.2.3")
    }
    return version
  }
}

/// Where runs and their phases are written down.
struct StateOptions: ParsableArguments {
  @Option(
    name: .customLong("state-dir"),
    help: ArgumentHelp(
      "The state folder: ledger, and what a later start needs to finish or clear away a run that "
        + "was cut off. (default: /var/lib/instar for root, else below ~/.local/state)",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder: String?

  var path: String { FilePath.absolute(folder ?? Installation.defaultStateFolder) }
}

enum FilePath {
  /// The path from the root. Nothing in it is resolved: a symbolic link stays one.
  static func absolute(_ path: String) -> String {
    if path.hasPrefix("/") { return path }
    var relative = path[...]
    while relative.hasPrefix("./") { relative = relative.dropFirst(2).drop { $0 == "/" } }
    let folder = FileManager.default.currentDirectoryPath
    return (folder.hasSuffix("/") ? folder : folder + "/") + relative
  }

  static func ofPlugin(_ path: String) throws(InstarError) -> String {
    let plugin = absolute(path)
    guard exists(plugin) else {
      throw InstarError(
        .missingPlugin, "cannot read plugin '\(path)'", cause: "there is no such file",
        next: "give the path of a plugin that 'instarctl plugin build' made")
    }
    return plugin
  }

  /// Whether there is anything at that path, or may be: also true of a symbolic link that leads
  /// nowhere, and of what lies in a folder that may not be entered.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 || ![ENOENT, ENOTDIR].contains(errno)
  }

  /// A path as it was typed on the command line.
  ///
  /// - Throws: `ValidationError`, a wrong usage, for an empty one, which would stand for the folder
  ///   the command is run in.
  static func typed(_ path: String) throws -> String {
    guard !path.isEmpty else { throw ValidationError("a path cannot be empty") }
    return path
  }
}
