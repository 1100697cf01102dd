import ArgumentParser
import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema

/// `instarctl config apply`
struct ConfigApplyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "apply",
    abstract: "Let the service instard write to the watched folders.",
    discussion: """
        instarctl config apply && systemctl restart instard

      The service can read the file system but not write it, and cannot see home folders, /tmp or /var/tmp. This \
      command writes a drop-in that lets the service write the watched folders, and makes systemd reload its \
      units. Restart the service afterwards. If a watched folder or a plugin is in a home folder, the service can \
      then read all home folders. The service cannot watch stores in /tmp or /var/tmp.
      """)

  @OptionGroup var source: ConfigurationOptions

  @Flag(help: "Print the drop-in without writing it.")
  var print = false

  @Option(
    help: ArgumentHelp(
      "Write the drop-in to this file, and do not reload systemd.", valueName: "file"),
    completion: .file(extensions: ["conf"]), transform: FilePath.typed)
  var dropIn: String?

  @OptionGroup var output: OutputOptions

  private struct AppliedConfiguration: CommandOutput {
    /// Where the drop-in is, or would be.
    var file: String
    /// `nil` where no drop-in is needed.
    var contents: String?
    var changed: Bool
    var daemonReloaded: Bool
    var notes: [String]

    var lines: [ConsoleLine] {
      guard changed else {
        return [
          contents == nil
            ? "no drop-in is needed: no folder is watched" : "'\(file)' is up to date"
        ]
      }
      return [contents == nil ? "removed '\(file)'" : "wrote '\(file)'"]
        + (daemonReloaded ? ["next: systemctl restart instard"] : [])
    }
  }

  /// This command with its file, if one was given, and its drop-in.
  private var commandForRoot: String {
    var words = ["instarctl config apply"]
    if let dropIn { words.append("--drop-in \(CommandText.quoted(FilePath.absolute(dropIn)))") }
    if source.path != ServiceConfiguration.file { words.append(CommandText.quoted(source.path)) }
    return words.joined(separator: " ")
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let configuration: Configuration
    do throws(InstarError) {
      configuration = try Configuration.read(path: source.path)
    } catch {
      throw source.completing(error, command: "apply")
    }
    let wanted = try ServiceDropIn(configuration, source: source.path)
    let file = dropIn.map(FilePath.absolute) ?? ServiceDropIn.defaultPath
    var answer = AppliedConfiguration(
      file: file, contents: wanted.contents, changed: false, daemonReloaded: false,
      notes: wanted.notes)
    if !print {
      answer.changed = ServiceUnit.content(of: file) != wanted.contents
      if answer.changed {
        try ServiceUnit.replace(file, by: wanted.contents, command: commandForRoot)
      }
      if dropIn == nil, ServiceUnit.hasManager {
        try ServiceUnit.reloadManager()
        answer.daemonReloaded = true
      }
    }
    if print, !output.json {
      if let contents = answer.contents {
        Console.write(ConsoleLine.lines(of: contents))
      } else {
        Console.note("no drop-in is needed: no folder is watched")
      }
    } else {
      output.write(answer)
    }
    if !output.json { Console.note(answer.notes.map { "note: \($0)" }) }
    return .done
  }
}
