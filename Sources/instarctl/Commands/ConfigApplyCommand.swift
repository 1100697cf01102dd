import ArgumentParser
import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema

/// `instarctl config apply`
struct ConfigApplyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "apply",
    abstract: "Opens the watched folders to the service instard.",
    discussion: """
      The service sees the file system read-only, and homes not at all. This writes the drop-in of \
      its unit that opens what the watches of the configuration need, and nothing else, and has \
      systemd read it. The service sees it after: systemctl restart instard
      """)

  @OptionGroup var source: ConfigurationOptions

  @Flag(help: "Print the drop-in, and change nothing.")
  var print = false

  @Option(
    help: ArgumentHelp(
      "Write the drop-in there, and leave systemd alone.", valueName: "file"),
    completion: .file(extensions: ["conf"]))
  var dropIn: String?

  @OptionGroup var output: OutputOptions

  private struct AppliedConfiguration: Answer {
    /// Where the drop-in is, or would be.
    var file: String
    /// `nil` where none is needed, and none is there.
    var contents: String?
    var changed: Bool
    var daemonReloaded: Bool
    var notes: [String]

    var lines: [ConsoleLine] {
      guard changed else {
        return [
          contents == nil
            ? "no drop-in is needed: nothing is watched" : "'\(file)' is as it must be"
        ]
      }
      return [contents == nil ? "'\(file)' is removed" : "'\(file)' is written"]
        + (daemonReloaded ? ["now: systemctl restart instard"] : [])
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let configuration = try Configuration.read(path: source.path)
    let wanted = try ServiceDropIn(configuration, source: source.path)
    let file = dropIn.map(FilePath.absolute) ?? ServiceDropIn.defaultPath
    var answer = AppliedConfiguration(
      file: file, contents: wanted.contents, changed: false, daemonReloaded: false,
      notes: wanted.notes)
    if !print {
      answer.changed = ServiceUnit.content(of: file) != wanted.contents
      if answer.changed { try ServiceUnit.replace(file, by: wanted.contents) }
      if dropIn == nil, ServiceUnit.hasManager {
        try ServiceUnit.reloadManager()
        answer.daemonReloaded = true
      }
    }
    if print, !output.json {
      if let contents = answer.contents {
        Console.write(ConsoleLine.lines(of: contents))
      } else {
        Console.note("no drop-in is needed: nothing is watched")
      }
    } else {
      output.write(answer)
    }
    if !output.json { Console.note(answer.notes.map { "note: \($0)" }) }
    return .done
  }
}
