import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl stores`
struct StoresCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "stores",
    abstract: "List the stores that instard watches.",
    discussion: """
        instarctl stores --state behind
        instarctl stores --activity quarantined --json
        instarctl stores --turn failed --plan NotesMigrationPlan

      Asks the running instard. Root and members of the group instar-admin see all stores, \
      everybody else the stores that they own. instard(8) explains the states.
      """)

  @Option(
    help: ArgumentHelp(
      "List only stores in this state: \(StoreState.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "state"),
    completion: .names(of: StoreState.self), transform: { try StoreState(named: $0) })
  var state: StoreState?

  @Option(
    help: ArgumentHelp(
      "List only stores with this activity: "
        + "\(Manager.Activity.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "activity"),
    completion: .names(of: Manager.Activity.self), transform: { try Manager.Activity(named: $0) })
  var activity: Manager.Activity?

  @Option(
    help: ArgumentHelp("List only stores of this plan.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "List only stores that had their turn in this wave of their plan's rollout.",
      valueName: "number"),
    completion: .waves)
  var wave: Int?

  @Option(
    help: ArgumentHelp(
      "List only stores with this turn or result in their plan's rollout: "
        + "\(Manager.Turn.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "turn"),
    completion: .names(of: Manager.Turn.self), transform: { try Manager.Turn(named: $0) })
  var turn: Manager.Turn?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let wave, wave < 1 { throw ValidationError("--wave must be at least 1") }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    var table = Manager.Store.table
    var count = 0
    let filter = Manager.StoreFilter(
      state: state, activity: activity, plan: plan, wave: wave, turn: turn)
    let connection = try socket.connection()
    try connection.stream(.listStores, filter) { (reply: Manager.StoresReply) in
      for store in reply.stores.map(connection.addressed) {
        count += 1
        if output.json {
          Console.write(json: store)
        } else {
          store.add(to: &table)
        }
      }
    }
    guard !output.json else { return .done }
    if count > 0 {
      Console.write(table.lines())
    } else {
      var note = "no such stores"
      if let plan, state == nil, activity == nil, wave == nil, turn == nil,
        let reason = try connection.reasonForNone(ofPlan: plan, in: "plugin or store")
      {
        note = reason
      }
      Console.note("\(note)")
    }
    return .done
  }
}
