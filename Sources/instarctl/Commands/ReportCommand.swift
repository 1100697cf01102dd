import ArgumentParser
import Foundation
import InstarControl
import InstarLinux
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

      For root, the report reads the runs from the ledger, so it also works while instard does not run. It asks \
      instard for the states of the stores. If instard cannot be reached, the report says that they are missing. \
      With --socket, and for other users, runs and stores come from instard, unless you name a state folder. With \
      '--state-dir FOLDER' alone, the report asks the instard whose socket is FOLDER/instard.sock.

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

  /// Whether the runs are read from a state folder: one that is named, or that of the service. Its daemon is then asked
  /// for the stores. Otherwise one daemon is asked for both, as `status` does.
  private var readsStateFolder: Bool {
    if state.folder != nil { return true }
    guard socket.socket == nil else { return false }
    return Installation.stateFolderOfEnvironment != nil
      || state.path == ServiceConfiguration.stateFolder
  }

  private func makeReport() throws(InstarError) -> FleetReport {
    if readsStateFolder { return try reportOfLedger(asksInstard: true) }
    let instard: DaemonConnection
    do throws(InstarError) {
      instard = try socket.connection()
    } catch  where socket.socket == nil {
      var report = try reportOfLedger(asksInstard: false)
      report.missing.append(
        "the stores and runs of the service, because instard cannot be reached: \(error.cause); the runs are "
          + "those of this user's own ledger")
      return report
    }
    return try report(of: instard)
  }

  /// The runs in the state folder, and the stores of its daemon if that is asked.
  private func reportOfLedger(asksInstard: Bool) throws(InstarError) -> FleetReport {
    try state.requireNamed("cannot report on the fleet")
    let folder = state.forReading
    let (runs, unreadableLines) = try folder.history(limit: Self.runLimit)
    var missing = Self.missing(runs, limit: Self.runLimit, unreadableLines)
    var rollouts: [RolloutRecord] = []
    do throws(InstarError) {
      rollouts = try folder.rolloutRecords()
    } catch {
      missing.append("the rollouts: \(error.cause)")
    }
    var status: Manager.Status?
    var stores: [Manager.Store] = []
    do throws(InstarError) {
      if asksInstard {
        let answer = try Self.stores(of: try socket.connection(ofStateFolder: state.path))
        status = answer.status
        stores = answer.stores
      }
    } catch {
      missing.append("the states of the stores, because instard cannot be reached: \(error.cause)")
    }
    return FleetReport(
      runs: runs, rollouts: rollouts, status: status, stores: stores, stateFolder: state.path,
      missing: missing, option: socket.option, madeAt: Date().timeIntervalSince1970)
  }

  /// The runs and the stores of one daemon, as far as this user may see them.
  private func report(of instard: DaemonConnection) throws(InstarError) -> FleetReport {
    let (status, stores) = try Self.stores(of: instard)
    var runs: [RunReport] = []
    var unreadableLines = 0
    try instard.stream(.history, Manager.RunFilter()) { (reply: Manager.RunsReply) in
      runs += reply.runs
      unreadableLines = reply.unreadableLines
    }
    var missing = Self.missing(runs, limit: Manager.historyLimit, unreadableLines)
    if !status.rollouts.isEmpty {
      missing.append("when the waves of the rollouts opened: only --state-dir shows that")
    }
    return FleetReport(
      runs: runs, rollouts: [], status: status, stores: stores, stateFolder: nil,
      missing: missing, option: socket.option, madeAt: Date().timeIntervalSince1970)
  }

  private static func stores(
    of instard: DaemonConnection
  ) throws(InstarError) -> (status: Manager.Status, stores: [Manager.Store]) {
    let status = try instard.call(.getStatus, returning: Manager.StatusReply.self).status
    var stores: [Manager.Store] = []
    try instard.stream(.listStores, Manager.StoreFilter()) { (reply: Manager.StoresReply) in
      stores += reply.stores
    }
    return (status, stores)
  }

  /// What the runs of a report leave out.
  private static func missing(
    _ runs: [RunReport], limit: Int, _ unreadableLines: Int
  ) -> [String] {
    var missing: [String] = []
    if runs.count == limit {
      missing.append("runs before the newest \(Quantity.grouped(limit))")
    }
    if unreadableLines > 0 { missing.append("\(unreadableLines) unreadable lines of the ledger") }
    return missing
  }
}
