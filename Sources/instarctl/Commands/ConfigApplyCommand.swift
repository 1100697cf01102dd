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

  /// The answer as JSON.
  private struct Answer: Encodable {
    /// Where the drop-in is, or would be.
    var file: String
    /// `nil` where none is needed, and none is there.
    var contents: String?
    var changed: Bool
    var daemonReloaded: Bool
    var notes: [String]
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let configuration = try Configuration.read(path: source.path)
    let wanted = try ServiceDropIn(configuration, source: source.path)
    let file = dropIn.map(FilePath.absolute) ?? ServiceDropIn.defaultPath
    var answer = Answer(
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
    if output.json {
      JSONLine.write(answer)
    } else {
      tell(answer)
    }
    return .done
  }

  private func tell(_ answer: Answer) {
    if print {
      answer.contents.map(Console.write)
      if answer.contents == nil { Console.note("no drop-in is needed: nothing is watched") }
    } else if answer.changed {
      Console.write(
        answer.contents == nil ? "'\(answer.file)' is removed" : "'\(answer.file)' is written")
      if answer.daemonReloaded { Console.write("now: systemctl restart instard") }
    } else {
      Console.write(
        answer.contents == nil
          ? "no drop-in is needed: nothing is watched" : "'\(answer.file)' is as it must be")
    }
    for note in answer.notes { Console.note("note: \(note)") }
  }
}
