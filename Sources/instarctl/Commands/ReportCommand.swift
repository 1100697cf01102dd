import ArgumentParser
import Foundation
import InstarControl
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl report`
struct ReportCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Report on the whole fleet: states, rollouts, runs, and failures with their causes.",
    discussion: """
        instarctl report
        instarctl report --html /var/www/instar.html

      The runs are those of the ledger, so the report also works while instard does not run. The states \
      of the stores are those that instard knows. If instard cannot be reached, the report says that they \
      are missing.

      The page of --html is one file. It loads nothing from the network, and follows the light or dark \
      setting of the browser.
      """)

  @Option(
    help: ArgumentHelp(
      "Write a page with plots to this file, and replace it if it exists. '-' prints the page.",
      valueName: "file"),
    completion: .file(extensions: ["html"]), transform: FilePath.typed)
  var html: String?

  @OptionGroup var state: StateOptions
  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if html == "-", output.json {
      throw ValidationError("'--html -' and '--json' both print the report; choose one")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let report = try makeReport()
    if html == "-" {
      Console.write(page: report.page)
      return .done
    }
    if let html {
      let file = FilePath.absolute(html)
      try OutputFile.replace(file, by: Data(report.page.utf8), mode: 0o600)
      if !output.json { Console.note("wrote '\(file)'") }
    }
    if html == nil || output.json { output.write(report) }
    return .done
  }

  /// The ledger may have ten times as many. They are in memory at one time.
  private static let runLimit = 100_000

  private func makeReport() throws(InstarError) -> FleetReport {
    try state.requireNamed("cannot report on the fleet")
    let folder = state.forReading
    let (runs, unreadableLines) = try folder.history(limit: Self.runLimit)
    var missing: [String] = []
    if runs.count == Self.runLimit {
      missing.append("runs before the newest \(Quantity.grouped(Self.runLimit))")
    }
    if unreadableLines > 0 { missing.append("\(unreadableLines) unreadable lines of the ledger") }
    var rollouts: [RolloutRecord] = []
    do throws(InstarError) {
      rollouts = try folder.rolloutRecords()
    } catch {
      missing.append("the rollouts: \(error.cause)")
    }
    var status: Manager.Status?
    var stores: [Manager.Store] = []
    do throws(InstarError) {
      let connection = try socket.connection(ofStateFolder: state.path)
      status = try connection.call(.getStatus, returning: Manager.StatusReply.self).status
      try connection.stream(.listStores, Manager.StoreFilter()) { (reply: Manager.StoresReply) in
        stores += reply.stores
      }
    } catch {
      status = nil
      missing.append("the states of the stores, because instard cannot be asked: \(error.cause)")
    }
    return FleetReport(
      runs: runs, rollouts: rollouts, status: status, stores: stores, stateFolder: state.path,
      missing: missing, madeAt: Date().timeIntervalSince1970)
  }
}
