import Foundation
import InstarConfiguration
import InstarCoordinator
import InstarLinux
import InstarSchema
import InstarSystemd
import InstarWire

/// instar-coordinator: takes turns with the other hosts of a fleet, through etcd, and permits instard to migrate.
///
/// Exit status: 0 stopped by a signal, or answered; 1 with --rollout: the answer is an error; 2 wrong usage or
/// configuration.

let usage = """
  usage: instar-coordinator [--config FILE] [--socket PATH] [--rollout]

  Take turns with the other hosts of a fleet, through etcd. instard migrates no store before this program permits it.
  The service manager starts it (instar-coordinator.service).

    --config FILE    the configuration of instard (default: /etc/instar/instard.yml)
    --socket PATH    the control socket of instard; replaces 'socket' of the configuration
    --rollout        answer one request of 'instarctl rollout' on descriptor 3, and end
    --version        print the release
    --help           print this text

  """

StandardStreams.openMissing()

var configurationFile = "/etc/instar/instard.yml"
var socketPath: String?
var answersRequest = false
var remaining = CommandLine.arguments.dropFirst()
@MainActor func value(of option: String) -> String {
  guard let value = remaining.popFirst() else {
    fail("instar-coordinator: \(option) needs a value\n\n\(usage)", status: 2)
  }
  return URL(fileURLWithPath: value).standardizedFileURL.path
}
while let argument = remaining.popFirst() {
  switch argument {
  case "--config": configurationFile = value(of: argument)
  case "--socket": socketPath = value(of: argument)
  case "--rollout": answersRequest = true
  case "--version":
    print("instar-coordinator \(Release.version)")
    exit(0)
  case "--help":
    print(usage, terminator: "")
    exit(0)
  default: fail("instar-coordinator: unknown argument '\(argument)'\n\n\(usage)", status: 2)
  }
}
// A connection that is gone is an error, not the end.
signal(SIGPIPE, SIG_IGN)

/// Answers the request of the channel, also with the reason why nothing can be done.
func answerRequest(_ file: String) async -> Int32 {
  let descriptor: Int32 = 3
  _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  let channel = LineChannel(descriptor: descriptor)
  do throws(InstarError) {
    let etcd: EtcdClient
    do throws(InstarError) {
      etcd = try EtcdClient(try readSettings(file).1)
    } catch {
      try channel.send(WireCoder.line(RolloutReply(rollouts: nil, error: error)))
      return 1
    }
    do throws(InstarError) {
      try await RolloutConversation(etcd).serve(channel)
    } catch {
      await etcd.close()
      throw error
    }
    await etcd.close()
    return 0
  } catch {
    // instarctl has ended: there is nobody to tell.
    return 1
  }
}

func readSettings(
  _ file: String
) throws(InstarError) -> (Configuration, CoordinatorSettings) {
  let configuration = try Configuration.read(path: file)
  guard let settings = configuration.coordinator else {
    throw InstarError(
      .invalidConfiguration, "cannot coordinate this host with others",
      cause: "'\(file)' has no 'coordinator'",
      next:
        "add 'coordinator' with the endpoints of etcd to '\(file)'; see instard.yml(5)"
    )
  }
  return (configuration, settings)
}

if answersRequest { exit(await answerRequest(configurationFile)) }

/// The journal, or standard error where there is none.
let log = CoordinatorLog(
  { entry in
    guard Journal.isAvailable else {
      FileHandle.standardError.write(Data("\(entry.message)\n".utf8))
      return
    }
    let fields =
      [(name: "SYSLOG_IDENTIFIER", value: "instar-coordinator")]
      + entry.allFields.map { (name: $0.key, value: $0.value) }
    do throws(InstarError) {
      try Journal.send(fields: fields)
    } catch {
      FileHandle.standardError.write(Data("\(entry.message)\n".utf8))
    }
  }, status: { ServiceNotification.send(.status($0)) })

do throws(InstarError) {
  let (configuration, settings) = try readSettings(configurationFile)
  let etcd = try EtcdClient(settings)
  let coordinator = Coordinator(
    settings, host: settings.host ?? ProcessInfo.processInfo.hostName,
    daemon: DaemonLink(socket: socketPath ?? configuration.socket), etcd: etcd, log: log)
  let work = Task { await coordinator.run() }
  let signals = [SIGTERM, SIGINT].map { number in
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
    source.setEventHandler {
      ServiceNotification.send(.stopping)
      work.cancel()
    }
    source.resume()
    return source
  }
  ServiceNotification.send(.ready)
  await work.value
  withExtendedLifetime(signals) {}
  await etcd.close()
} catch {
  fail(error.description, status: 2)
}
