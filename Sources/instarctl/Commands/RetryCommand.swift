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

      Without stores, it retries all that wait for another attempt, or for a change after several \
      equal failures. When the store or its plugin changes, instard retries by itself.
      """)

  @Argument(help: "The stores.", completion: .stores, transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    let retried = try FilePath.asInstardSpells(stores) { (paths) throws(InstarError) in
      try connection.call(
        .retry, Manager.RetryParameters(stores: paths), returning: Manager.StoresReply.self)
    }.stores
    if output.json {
      retried.forEach { Console.write(json: $0) }
    } else if retried.isEmpty {
      Console.note("nothing to do: no such store waits for another attempt")
    } else {
      Console.note("instard retries \(retried.count) \(retried.count == 1 ? "store" : "stores")")
    }
    return .done
  }
}
