import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl approve`
struct ApproveCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Have instard migrate stores that wait for an approval.",
    usage: "instarctl approve [--plan <name>] [<option> ...] [<store> ...]",
    discussion: """
        instarctl approve --plan NotesMigrationPlan
        instarctl approve /srv/app/a.store

      A store waits if its watch has the policy 'ask'. Without stores, instard migrates all stores of \
      the plan that wait, and those that it finds later. A new version of the plan, or of its \
      plugin, needs a new approval. Owners may approve stores of their own, by their paths.
      """)

  @Argument(help: "The stores.", completion: .stores, transform: FilePath.typed)
  var stores: [String] = []

  @Option(
    help: ArgumentHelp("The plan whose stores are approved.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard plan != nil || !stores.isEmpty else {
      throw ValidationError("name the stores to approve, or their plan with --plan")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    let before = try connection.call(.getStatus, returning: Manager.StatusReply.self).status
    _ = try FilePath.asInstardSpells(stores) { (paths) throws(InstarError) in
      try connection.call(.approve, Manager.ApproveParameters(plan: plan, stores: paths))
    }
    // A status has rollouts only for those who may approve all stores of a plan.
    if let plan, stores.isEmpty, !output.json,
      before.rollouts.allSatisfy({ $0.plan != plan || $0.unapproved == 0 })
    {
      Console.note(
        "no store of \(plan) waits for an approval now; instard migrates those that it finds later")
    }
    return try connection.writeStatus(output, socket)
  }
}
