public import InstarConfiguration
public import InstarLinux
public import InstarSchema
import InstarSupervisor
public import ServiceLifecycle

/// The daemon as a service: owns the state folder, and feeds the loop (`Daemon`) until it is told to stop.
public struct DaemonService: Service {
  private let configuration: Configuration
  private let configurationFile: String
  private let installation: Installation
  private let passedSocket: Int32?
  private let log: EventLog
  private let readConfiguration: @Sendable () throws(InstarError) -> Configuration
  private let mailbox: DaemonMessage.Mailbox
  private let inputs: AsyncStream<DaemonMessage>

  /// - Parameters:
  ///   - configuration: The configuration at the start.
  ///   - configurationFile: The path of the configuration.
  ///   - installation: Where keeper and worker are.
  ///   - passedSocket: A listening socket for clients that the service manager passed to this process.
  ///   - log: Where events go.
  ///   - readConfiguration: Reads the configuration again; called on `reload`.
  public init(
    configuration: Configuration, configurationFile: String, installation: Installation,
    passedSocket: Int32? = nil, log: EventLog,
    readConfiguration: @escaping @Sendable () throws(InstarError) -> Configuration
  ) {
    self.configuration = configuration
    self.configurationFile = configurationFile
    self.installation = installation
    self.passedSocket = passedSocket
    self.log = log.reaching(configuration.socket)
    self.readConfiguration = readConfiguration
    (inputs, mailbox) = AsyncStream.makeStream(of: DaemonMessage.self)
  }

  /// Reads the configuration again, rescans every folder and plugin, and retries every store, also those that instard
  /// had stopped retrying, but not damaged ones whose file is the same. A configuration that cannot be used is
  /// reported, and the old one stays in force.
  public func reload() {
    mailbox.yield(.reload)
  }

  /// Works until graceful shutdown is asked for.
  ///
  /// - Throws: `stateFolderFailed` when the state folder cannot be used, or another daemon uses it; `watchFailed` when
  ///   the kernel gives no more inotify instances. No store is touched then.
  public func run() async throws {
    let stateFolder = try StateFolder(path: configuration.stateFolder)
    guard let lock = try stateFolder.tryLock() else {
      throw InstarError(
        .stateFolderFailed, "cannot use the state folder '\(configuration.stateFolder)'",
        cause: "another instard uses the state folder",
        next: "stop the other instard, or set another 'state' in the configuration")
    }
    defer { lock.release() }
    let supervisor = Supervisor(
      installation: installation, stateFolder: stateFolder, rights: .storeOwner)
    let hooks = HookQueue(
      configuration, configurationFile: configurationFile, program: installation.hookRunner,
      log: log)
    defer { hooks.close() }
    var log = log
    log.hooks = hooks
    let control = openControlSocket(stateFolder)
    defer { control?.close() }
    var daemon = try Daemon(
      configuration: configuration, supervisor: supervisor, log: log, mailbox: mailbox,
      readConfiguration: readConfiguration)
    defer { daemon.close() }
    await withGracefulShutdownHandler {
      daemon.start()
      for await input in inputs {
        daemon.handle(input)
        if daemon.isDone { break }
      }
    } onGracefulShutdown: {
      mailbox.yield(.shutdown)
    }
    // Also reached when the task was cancelled rather than shut down.
    supervisor.cancel()
  }

  /// Without the socket nobody can control the daemon, but stores are migrated all the same.
  private func openControlSocket(_ stateFolder: StateFolder) -> ControlSocket? {
    do throws(InstarError) {
      return try ControlSocket(
        at: configuration.socket, passed: passedSocket, feed: log.feed, stateFolder: stateFolder
      ) { [mailbox] request in
        if case .enqueued = mailbox.yield(.control(request)) { true } else { false }
      }
    } catch {
      log.post(.problem(error))
      return nil
    }
  }
}
