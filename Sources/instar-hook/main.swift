import Foundation
import InstarConfiguration
import InstarHooks
import InstarLinux
import InstarSchema
import InstarSystemd

/// instar-hook: runs the hooks of events for instard.
///
/// Exit status: 0 nobody needs it any more, 1 the conversation failed, 2 wrong usage.

let usage = """
  usage: instar-hook --config FILE

  Run the hooks of events, one after the other. The configuration says which programs are hooks, which user they
  run as, and how long they may take; instard names only the event. The service manager starts this program when
  instard connects to its socket (instar-hook.socket). Without that socket, instard starts it, with a socket on
  descriptor 3. Do not start it by hand.

    --config FILE    the configuration of instard
    --help           print this text

  """

/// The descriptor of the conversation, if instard started this program.
let channelDescriptor: Int32 = 3
/// A runner that has waited so long for the next event ends; the service manager starts it again.
let patienceMilliseconds: Int32 = 30_000

StandardStreams.openMissing()

var configuration: String?
var remaining = CommandLine.arguments.dropFirst()
while let argument = remaining.popFirst() {
  switch argument {
  case "--config":
    guard let value = remaining.popFirst() else {
      fail("instar-hook: --config needs a value\n\n\(usage)", status: 2)
    }
    configuration = value
  case "--help":
    print(usage, terminator: "")
    exit(0)
  default:
    fail("instar-hook: unknown argument '\(argument)'\n\n\(usage)", status: 2)
  }
}
guard let configuration else { fail("instar-hook: --config is needed\n\n\(usage)", status: 2) }

/// Answers the requests of one connection.
func serve(_ descriptor: Int32) {
  // Where the hooks are and how they run, as the last configuration that could be read says; else the defaults.
  var hooks = Configuration().hooks
  let conversation = HookConversation(LineChannel(descriptor: descriptor)) {
    () throws(InstarError) in
    // An operator must hear of a configuration that cannot be used, so the hooks of the last good one run.
    do throws(InstarError) {
      hooks = try Configuration.read(path: configuration).hooks
    } catch {
      // A file that is not there at all is another mistake.
      guard access(configuration, R_OK) == 0 else { throw error }
    }
    return try HookRunner(
      folder: HookFolder(hooks.folder), user: hooks.user, timeLimit: hooks.timeLimit,
      killsOrphans: true)
  }
  do throws(InstarError) {
    try conversation.serve()
  } catch {
    // Most conversations end because instard has.
    guard error.code != .interrupted else { return }
    fail(error.description, status: 1)
  }
}

do throws(InstarError) {
  try OrphanedProcess.adoptAll()
} catch {
  fail(error.description, status: 1)
}
if let listener = PassedSocket.takeAll().first {
  while true {
    var interest = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
    let ready = poll(&interest, 1, patienceMilliseconds)
    if ready < 0 && errno == EINTR { continue }
    guard ready > 0 else { exit(0) }
    if let connection = UnixSocket.accept(from: listener.descriptor) { serve(connection) }
  }
}
guard UnixSocket.isSocket(channelDescriptor) else {
  fail(
    "instar-hook: no socket was passed; instard or the service manager starts this program",
    status: 2)
}
_ = fcntl(channelDescriptor, F_SETFD, FD_CLOEXEC)
serve(channelDescriptor)
