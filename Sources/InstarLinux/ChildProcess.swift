import CInstar
public import Foundation
import Glibc
public import InstarSchema
import Synchronization

/// A program that this process started, in its own process group.
///
/// States: running → ended (its pidfd polls readable) → reaped (`termination` is known). Invariants:
/// - a signal goes to the group only before the child is reaped: until then the kernel does not reuse its number, which
///   is also the group's;
/// - the rest of the group gets SIGKILL before the child is reaped, so that nothing outlives it;
/// - a child that nobody waited for is killed and reaped with the last reference;
/// - the child of a fork server is reaped by the server, when it is told to: all of this holds for it too.
public final class ChildProcess: Sendable {
  /// Where the child's standard output and standard error go.
  public enum Output: Sendable, Hashable {
    /// To this process's output.
    case inherit
    /// To `/dev/null`.
    case null
    /// To `capturedOutput`: the first and the last part, `limitBytes` in all. Output is read without a pause, so the
    /// child never blocks. With `killsFlood`, a child that writes more than the limit is killed.
    case captured(limitBytes: Int, killsFlood: Bool = false)
  }

  /// How a child ended.
  public enum Termination: Sendable, Hashable, CustomStringConvertible {
    case exited(Int32)
    case signaled(Int32)

    /// "exited with status 3", "was killed by SIGILL".
    public var description: String {
      switch self {
      case .exited(let status): "exited with status \(status)"
      case .signaled(let signal): "was killed by \(signalName(signal))"
      }
    }
  }

  public let pid: Int32
  private let processDescriptor: Int32
  private let termination = Mutex<Termination?>(nil)
  private let capture: OutputCapture?
  /// The parent of a child that was forked and not started here: it reaps the child.
  private let server: ForkServer?

  private init(
    pid: pid_t, processDescriptor: Int32, capture: OutputCapture?, server: ForkServer? = nil
  ) {
    self.pid = pid
    self.processDescriptor = processDescriptor
    self.capture = capture
    self.server = server
  }

  deinit {
    kill()
    // It was killed; nobody asks any more how it ended.
    _ = try? wait()
    Glibc.close(processDescriptor)
  }

  /// Starts a program.
  ///
  /// Signals are unblocked and at their defaults, and no descriptor but 0–3 is open.
  ///
  /// - Parameters:
  ///   - executable: A path; `PATH` is not searched.
  ///   - arguments: Without the program's name.
  ///   - environment: `nil` passes this process's on; to another user, what he needs of it.
  ///   - input: What the child reads from its standard input; empty by default.
  ///   - channel: Becomes the child's descriptor 3. The caller still owns its own and closes it.
  ///   - identity: As whom it runs. One that is not `.inherited` starts in `/`.
  /// - Throws: `incompleteInstallation` where there is no such program, or the other user may not run it;
  ///   `internalError` where it cannot be started.
  public static func start(
    executable: String, arguments: [String], environment: [String: String]? = nil,
    input: Data = Data(), channel: Int32? = nil, output: Output = .inherit,
    identity: ProcessIdentity = .inherited
  ) throws(InstarError) -> ChildProcess {
    let what =
      if case .user(let user) = identity {
        "cannot start '\(executable)' as user \(user.name)"
      } else {
        "cannot start '\(executable)'"
      }
    let variables = (environment ?? identity.environment(of: ProcessInfo.processInfo.environment))
      .map { "\($0)=\($1)" }
    return try start(what, input, channel, output) {
      (descriptors, capture) throws(InstarError) in
      let spawned = spawn([executable] + arguments, variables, descriptors, identity)
      guard spawned.failure == 0 else { throw failure(what, spawned.failure, identity) }
      return try started(spawned.pid, try watch(spawned.pid, executable), capture)
    }
  }

  /// Has a server fork a child, which then is as one that this process started.
  ///
  /// - Throws: `internalError` where the server cannot fork or has ended. It is of no use then.
  static func fork(
    from server: ForkServer, arguments: [String], input: Data, channel: Int32, output: Output
  ) throws(InstarError) -> ChildProcess {
    let what = "cannot fork '\(server.executable)'"
    return try start(what, input, channel, output) {
      (descriptors, capture) throws(InstarError) in
      let pid = try server.fork(
        [server.executable] + arguments, what,
        [descriptors.input, descriptors.output, descriptors.error, descriptors.channel])
      let processDescriptor = instar_pidfd_open(pid)
      // Without the server, which its user now ends, the child dies too.
      guard processDescriptor >= 0 else { throw .systemFailure(what, errno) }
      return try started(pid, processDescriptor, server: server, capture)
    }
  }

  /// What makes the capture of a child's output, once the child runs.
  private typealias CaptureMaker =
    (_ processDescriptor: Int32) throws(InstarError) -> OutputCapture?

  /// Returns the object of a child that runs. A child whose output cannot be read is killed and reaped.
  private static func started(
    _ pid: pid_t, _ processDescriptor: Int32, server: ForkServer? = nil, _ capture: CaptureMaker
  ) throws(InstarError) -> ChildProcess {
    do throws(InstarError) {
      return ChildProcess(
        pid: pid, processDescriptor: processDescriptor, capture: try capture(processDescriptor),
        server: server)
    } catch {
      // The end of the object kills and reaps the child.
      _ = ChildProcess(
        pid: pid, processDescriptor: processDescriptor, capture: nil, server: server)
      throw error
    }
  }

  /// Prepares the descriptors of a child, and has `body` start it.
  private static func start(
    _ what: String, _ input: Data, _ channel: Int32?, _ output: Output,
    _ body: (Descriptors, CaptureMaker) throws(InstarError) -> ChildProcess
  ) throws(InstarError) -> ChildProcess {
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { throw .systemFailure(what, errno) }
    defer { Glibc.close(null) }
    let text = input.isEmpty ? nil : try file(of: input, what)
    defer { if let text { Glibc.close(text) } }
    let pipe = try output.pipe(what)
    do throws(InstarError) {
      return try body(
        output.descriptors(null: null, input: text, pipe: pipe?.write, channel: channel)
      ) { (processDescriptor) throws(InstarError) in
        let capture = try output.capture(pipe?.read, processDescriptor)
        // The child has its copy of this end: the capture ends when the child has closed that.
        if let pipe { Glibc.close(pipe.write) }
        return capture
      }
    } catch {
      if let pipe {
        Glibc.close(pipe.write)
        Glibc.close(pipe.read)
      }
      throw error
    }
  }

  /// Returns a descriptor of a file in memory, at its beginning, that nobody can change. Unlike a pipe it never makes
  /// anybody wait.
  private static func file(of contents: Data, _ what: String) throws(InstarError) -> Int32 {
    let descriptor = instar_memory_file()
    guard descriptor >= 0 else { throw .systemFailure(what, errno) }
    do {
      let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
      try handle.write(contentsOf: contents)
      try handle.seek(toOffset: 0)
      guard instar_seal(descriptor) == 0 else { throw InstarError.systemFailure(what, errno) }
      return descriptor
    } catch {
      Glibc.close(descriptor)
      throw InstarError(.internalError, what, cause: InstarError.reason(of: error))
    }
  }

  /// The child's descriptors 0 to 3, as this process has them.
  fileprivate struct Descriptors: Sendable {
    let input: Int32
    let output: Int32
    let error: Int32
    /// -1 for none.
    let channel: Int32
  }

  /// - Parameter command: The program and its arguments.
  private static func spawn(
    _ command: [String], _ variables: [String], _ descriptors: Descriptors,
    _ identity: ProcessIdentity
  ) -> StartingThread.Spawned {
    StartingThread.shared.run {
      withCStrings(command) { arguments in
        withCStrings(variables) { variables in
          identity.withIdentity { identity in
            var pid: pid_t = 0
            let failure = instar_spawn(
              identity, command[0], arguments, variables, descriptors.input, descriptors.output,
              descriptors.error, descriptors.channel, &pid)
            return StartingThread.Spawned(failure: failure, pid: pid)
          }
        }
      }
    }
  }

  private static func failure(
    _ what: String, _ reason: Int32, _ identity: ProcessIdentity
  ) -> InstarError {
    switch (reason, identity) {
    case (ENOENT, _):
      .systemFailure(what, reason, code: .incompleteInstallation)
    case (EACCES, .user):
      .systemFailure(
        what, reason, code: .incompleteInstallation,
        next: "install Instar in a folder that this user can enter")
    default:
      .systemFailure(what, reason)
    }
  }

  /// Returns a descriptor of the process. A process that cannot be watched is killed and reaped.
  private static func watch(_ pid: Int32, _ executable: String) throws(InstarError) -> Int32 {
    let descriptor = instar_pidfd_open(pid)
    guard descriptor < 0 else { return descriptor }
    let reason = errno
    Glibc.kill(-pid, SIGKILL)
    waitpid(pid, nil, 0)
    throw .systemFailure("cannot monitor '\(executable)'", reason)
  }

  /// Waits until the child has ended, and reaps it. Any number of threads may wait.
  ///
  /// - Returns: How it ended; `nil` where the deadline passed first.
  public func wait(
    deadline: ContinuousClock.Instant? = nil
  ) throws(InstarError) -> Termination? {
    while true {
      if let known = termination.withLock({ $0 }) { return known }
      var interest = pollfd(fd: processDescriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&interest, 1, pollTimeoutMilliseconds(until: deadline))
      if ready > 0 { return try reap() }
      if ready == 0, let deadline, deadline <= ContinuousClock.now { return nil }
      let reason = errno
      if ready < 0, reason != EINTR {
        throw .systemFailure("cannot wait for process \(pid)", reason)
      }
    }
  }

  /// Sends a signal to the whole process group; does nothing once the child was waited for.
  public func kill(_ signal: Int32 = SIGKILL) {
    termination.withLock { termination in
      guard termination == nil else { return }
      Glibc.kill(-pid, signal)
      // The child itself may have left its group.
      _ = instar_pidfd_send_signal(processDescriptor, signal)
    }
  }

  /// What the child has written so far: the first and the last part of it. Complete once it was waited for. Empty
  /// unless captured.
  public var capturedOutput: String { capture?.text ?? "" }

  private func reap() throws(InstarError) -> Termination? {
    let result = try termination.withLock { (termination) throws(InstarError) -> Termination in
      if let known = termination { return known }
      // The child is a zombie: its number, and with it the group's, is still its own.
      Glibc.kill(-pid, SIGKILL)
      var isSignaled: Int32 = 0
      var code: Int32 = 0
      if let server {
        // Whatever ended the server, its end killed the child.
        if !server.reap(&isSignaled, &code) { (isSignaled, code) = (1, SIGKILL) }
      } else if instar_pidfd_wait(processDescriptor, &isSignaled, &code) != 0 {
        throw .systemFailure("cannot wait for process \(pid)", errno)
      }
      let result: Termination = isSignaled == 0 ? .exited(code) : .signaled(code)
      termination = result
      return result
    }
    capture?.waitUntilComplete()
    return result
  }
}

extension ChildProcess.Output {
  /// Returns a pipe for captured output, `nil` for other output.
  fileprivate func pipe(_ what: String) throws(InstarError) -> (read: Int32, write: Int32)? {
    guard case .captured = self else { return nil }
    var ends: (read: Int32, write: Int32) = (-1, -1)
    guard instar_pipe(&ends.read, &ends.write) == 0 else { throw .systemFailure(what, errno) }
    return ends
  }

  fileprivate func descriptors(
    null: Int32, input: Int32?, pipe: Int32?, channel: Int32?
  ) -> ChildProcess.Descriptors {
    let (output, error): (Int32, Int32) =
      switch self {
      case .inherit: (STDOUT_FILENO, STDERR_FILENO)
      case .null: (null, null)
      case .captured: (pipe ?? null, pipe ?? null)
      }
    return ChildProcess.Descriptors(
      input: input ?? null, output: output, error: error, channel: channel ?? -1)
  }

  /// Starts to read captured output, and owns the pipe from then on.
  fileprivate func capture(
    _ pipe: Int32?, _ processDescriptor: Int32
  ) throws(InstarError) -> OutputCapture? {
    guard let pipe, case .captured(let limitBytes, let killsFlood) = self else { return nil }
    return try OutputCapture(
      pipe: pipe, processDescriptor: processDescriptor, limitBytes: limitBytes,
      killsFlood: killsFlood)
  }
}

/// The thread that starts every child, and never ends.
///
/// A worker asks the kernel to kill it when its parent dies, and the kernel takes the *thread* that started it for the
/// parent (prctl(2), PR_SET_PDEATHSIG). Threads of a pool come and go; a worker started from one would die with it.
private final class StartingThread: Sendable {
  static let shared = StartingThread()

  private let jobs = Mutex<[@Sendable () -> Void]>([])
  private let available = DispatchSemaphore(value: 0)
  private let isRunning = Mutex(false)

  /// Starts the thread, unless it runs.
  ///
  /// - Returns: 0, or the `errno`. The next child tries again.
  private func start() -> Int32 {
    isRunning.withLock { isRunning in
      guard !isRunning else { return 0 }
      let reason = startThread(named: "instar-start", stackBytes: 256 << 10) { [self] in serve() }
      isRunning = reason == 0
      return reason
    }
  }

  private func serve() {
    while true {
      available.wait()
      let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      job?()
    }
  }

  /// What `spawn` returned, once it ran on the thread.
  func run(_ spawn: @escaping @Sendable () -> Spawned) -> Spawned {
    let reason = start()
    guard reason == 0 else { return Spawned(failure: reason, pid: 0) }
    let spawned = AwaitedValue<Spawned>()
    jobs.withLock { $0.append { spawned.give(spawn()) } }
    available.signal()
    return spawned.wait()
  }

  struct Spawned: Sendable {
    /// 0, or an `errno`.
    var failure: Int32
    var pid: pid_t
  }
}

/// Calls `body` with a C array of C strings that ends in NULL.
private func withCStrings<Value>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>?) -> Value
) -> Value {
  var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
  pointers.append(nil)
  defer { for pointer in pointers { free(pointer) } }
  return pointers.withUnsafeBufferPointer { body($0.baseAddress) }
}

/// "SIGILL"; "signal 40" for one without a name.
private func signalName(_ signal: Int32) -> String {
  let names: [Int32: String] = [
    SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
    SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL",
    SIGUSR1: "SIGUSR1", SIGSEGV: "SIGSEGV", SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE",
    SIGALRM: "SIGALRM", SIGTERM: "SIGTERM", SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ",
    SIGSYS: "SIGSYS",
  ]
  return names[signal] ?? "signal \(signal)"
}
