import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl retry`
struct RetryCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Have instard try stores again at once that failed.",
    usage: "instarctl retry [<option> ...] [<store> ...]",
    discussion: """
        instarctl retry
        instarctl retry /srv/app/a.store

      Without stores, all that wait for another attempt, or for a change after several equal \
      failures. instard tries these by itself when the store or its plugin changes.
      """)

  @Argument(help: "The stores.", completion: .file(), transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let parameters = Manager.RetryParameters(stores: stores.map(FilePath.ofStore))
    let retried = try socket.connection()
      .call(.retry, parameters, returning: Manager.StoresReply.self).stores
    if output.json {
      retried.forEach { Console.write(json: $0) }
    } else if retried.isEmpty {
      Console.note("nothing to do: no store waits for another attempt")
    } else {
      Console.note(
        "instard tries again: \(retried.count) \(retried.count == 1 ? "store" : "stores")")
    }
    return .done
  }
}
