import Foundation
import InstarKeeper
import InstarLinux
import InstarSchema
import InstarSignatures

/// instar-keeper: answers the requests of one supervisor on descriptor 3 until the supervisor closes it.
///
/// Exit status: 0 the supervisor closed the session, 1 the session failed, 2 wrong usage,
/// 75 a statement on a store did not end within its processor time.

let usage = """
  usage: instar-keeper --worker FILE --library FILE [--read PATH]... [--own-stores-only]
                       [--nice N] [--disk-priority LEVEL] [--require-signature]
                       [--trusted-key KEY]... [--allow-unconfined]

  Lock, back up, clone, verify and write stores for instard and instarctl, as the user who owns
  them. instard and instarctl start it and talk to it on descriptor 3, a connected stream socket.
  Do not start it by hand.

    --worker FILE        the path of instar-worker, which runs plugins
    --library FILE       the path of libInstar.so, which the worker loads
    --read PATH          a file or folder that workers may read, besides the system's libraries and
                         the folder of libInstar.so; repeatable
    --own-stores-only    open only stores that this user owns, on paths that only this user and
                         root can change
    --nice N             yield processors to other programs: 0 to 19, as nice(1)
    --disk-priority LEVEL
                         0 to 7, or 'idle' to use the disk only while nobody else does
    --require-signature  load only plugins that a trusted key signed
    --trusted-key KEY    a public key of Ed25519, in Base64; repeatable
    --allow-unconfined   run plugins even where the kernel has no Landlock to confine them
    --help               print this text

  """

/// The descriptor of the conversation.
let channelDescriptor: Int32 = 3

StandardStreams.openMissing()

var worker: String?
var library: String?
var readable: [String] = []
var allowsUnconfined = false
var openPolicy = OpenPolicy.any
var requiresSignature = false
var trustedKeys: [TrustedKeys.Key] = []
var priority = ProcessPriority()
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
  case "--require-signature": requiresSignature = true
  case "--trusted-key":
    guard let key = Data(base64Encoded: value()) else {
      fail("instar-keeper: --trusted-key is not Base64\n\n\(usage)", status: 2)
    }
    trustedKeys.append(TrustedKeys.Key(name: "", bytes: key))
  case "--own-stores-only": openPolicy = .own
  case "--nice":
    let text = value()
    guard let nice = Int(text), (0...19).contains(nice) else {
      fail("instar-keeper: --nice must be a number from 0 to 19, not '\(text)'", status: 2)
    }
    priority.nice = nice
  case "--disk-priority":
    let text = value()
    guard let disk = ProcessPriority.Disk(text) else {
      fail("instar-keeper: --disk-priority must be idle or 0 to 7, not '\(text)'", status: 2)
    }
    priority.disk = disk
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
guard UnixSocket.isSocket(channelDescriptor) else {
  fail(
    "instar-keeper: descriptor 3 is not a socket; instard and instarctl start this program",
    status: 2)
}

// A hostile store cannot make this process use up the machine's memory or processor.
Keeper.limitProcess()
// Only their owner may read clones and backups.
umask(0o077)
// A write beyond the limit of the size of files then fails with EFBIG, and the run rolls back.
signal(SIGXFSZ, SIG_IGN)
// Workers do not inherit the supervisor's channel.
_ = fcntl(channelDescriptor, F_SETFD, FD_CLOEXEC)

readable.append(library.parentFolder)
if let runtime = (try? Installation.locate())?.swiftRuntimeFolder { readable.append(runtime) }

let keeper = Keeper(
  conversation: ChannelConversation(LineChannel(descriptor: channelDescriptor)),
  host: LightweightHost(
    besides: WorkerProcess(
      worker: worker, library: library, readable: readable, allowsUnconfined: allowsUnconfined,
      supervisor: channelDescriptor,
      signatures: requiresSignature
        ? SignaturePolicy(keys: trustedKeys) { PluginSignature.isValid($0, of: $1, by: $2) } : nil)),
  openPolicy: openPolicy)
do {
  // Before there is another thread, which would keep the priority it has.
  try priority.apply()
  try keeper.serve()
} catch {
  // Most sessions end because the supervisor has.
  guard error.code != .interrupted else { exit(0) }
  fail(error.description, status: 1)
}
