import Foundation
import InstarKeeper
import InstarLinux
import InstarSchema

/// instar-keeper: answers the requests of one supervisor on descriptor 3 until that is closed.
///
/// Exit status: 0 the supervisor closed the conversation, 1 the conversation failed, 2 usage.

let usage = """
  usage: instar-keeper --worker FILE --library FILE [--read PATH]... [--own-stores-only]
                       [--allow-unconfined]

  Locks, clones, backs up, verifies and writes stores for instard and instarctl, as the user that
  owns them. Started by these, which talk to it on descriptor 3, a connected stream socket; not
  meant to be started by hand.

    --worker FILE        instar-worker, which runs plugins
    --library FILE       libInstar.so, which the worker loads
    --read PATH          a file or folder that workers may read besides the system's libraries and
                         the folder of the library; repeatable
    --own-stores-only    open only stores that belong to this user, and that nobody but he and root
                         could have put where they are
    --allow-unconfined   run plugins also where the kernel has no Landlock to confine them
    --help               this text

  """

/// The descriptor of the conversation.
let channelDescriptor: Int32 = 3

func fail(_ text: String, status: Int32) -> Never {
  FileHandle.standardError.write(Data((text + "\n").utf8))
  exit(status)
}

var worker: String?
var library: String?
var readable: [String] = []
var allowsUnconfined = false
var openPolicy = OpenPolicy.any
var remaining = CommandLine.arguments.dropFirst()

while let argument = remaining.popFirst() {
  func value() -> String {
    guard let value = remaining.popFirst() else {
      fail("instar-keeper: \(argument) needs a value\n\n\(usage)", status: 2)
    }
    return value
  }
  switch argument {
  case "--worker": worker = value()
  case "--library": library = value()
  case "--read": readable.append(value())
  case "--own-stores-only": openPolicy = .own
  case "--allow-unconfined": allowsUnconfined = true
  case "--help":
    print(usage, terminator: "")
    exit(0)
  default:
    fail("instar-keeper: unknown argument '\(argument)'\n\n\(usage)", status: 2)
  }
}

guard let worker, let library else {
  fail("instar-keeper: --worker and --library are needed\n\n\(usage)", status: 2)
}
var kind: Int32 = 0
var length = socklen_t(MemoryLayout<Int32>.size)
guard getsockopt(channelDescriptor, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 else {
  fail(
    "instar-keeper: descriptor 3 is no socket; it is started by instard and instarctl", status: 2)
}

// However a store is made, it cannot make this process use up the machine's memory.
Keeper.limitMemory()
// Clones and backups are for their owner alone.
umask(0o077)
// Workers get only the channel that is meant for them.
_ = fcntl(channelDescriptor, F_SETFD, FD_CLOEXEC)

readable.append(URL(fileURLWithPath: library).deletingLastPathComponent().path)
if let runtime = (try? Installation.locate())?.swiftRuntimeFolder { readable.append(runtime) }

let keeper = Keeper(
  conversation: ChannelConversation(LineChannel(descriptor: channelDescriptor)),
  host: WorkerProcess(
    worker: worker, library: library, readable: readable, allowsUnconfined: allowsUnconfined,
    supervisor: channelDescriptor),
  openPolicy: openPolicy)
do {
  try keeper.serve()
} catch {
  // A supervisor that is gone is how most conversations end.
  guard error.code != .interrupted else { exit(0) }
  fail(error.description, status: 1)
}
