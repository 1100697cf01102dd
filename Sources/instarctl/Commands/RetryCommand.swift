import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl retry`
struct RetryCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Have instard retry failed stores now.",
    usage: "instarctl retry [<option> ...] [<store> ...]",
    discussion: """
        instarctl retry
        instarctl retry /srv/app/a.store

      Without stores, it retries all that wait for another attempt, or are quarantined. When the store or its \
      plugin changes, instard retries by itself; a damaged store only when its file changes.

      For each store that instard does not retry now, such as a held one, it prints the reason and the next \
      command. instard retries the stores of a halted rollout when you resume the rollout; a damaged one needs \
      another retry then.
      """)

  @Argument(help: "The stores.", completion: .stores, transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    let reply = try FilePath.asInstardSpells(stores) { (paths) throws(InstarError) in
      try connection.call(
        .retry, Manager.RetryParameters(stores: paths), returning: Manager.RetryReply.self)
    }
    let (retried, others) = (
      reply.stores.map(connection.addressed), (reply.others ?? []).map(connection.addressed)
    )
    if output.json {
      (retried + others).forEach { Console.write(json: $0) }
      return .done
    }
    if !retried.isEmpty {
      Console.note("instard retries \(retried.count.counted("store"))")
    } else if others.isEmpty {
      Console.note(
        "nothing to do: no \(stores.isEmpty ? "" : "such ")store waits for another attempt")
    }
    if stores.isEmpty {
      // There may be thousands with the same reason.
      for (reason, stores) in Dictionary(grouping: others, by: \.notRetried)
        .sorted(by: { $0.value[0].store < $1.value[0].store })
      {
        Console.note("instard does not retry \(stores.count.counted("store")) now: \(reason ?? "")")
      }
    } else {
      for store in others {
        Console.note(
          "instard does not retry '\(store.store)' now: \(store.notRetried ?? "")")
      }
    }
    return .done
  }
}
