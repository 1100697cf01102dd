import Dispatch
import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import Synchronization

/// Publishes the metrics on the socket and in the text file of the configuration.
///
/// Invariants:
/// - A socket or a file that fails is reported once, and stores are migrated all the same.
/// - The file is replaced every `fileInterval`, so that its age shows whether the daemon lives. It is removed when the
///   daemon ends or another file takes its place: node_exporter would show its values for ever.
struct PublishedMetrics {
  typealias Instant = ContinuousClock.Instant

  private static let fileInterval = Duration.seconds(15)
  /// How long the end of the daemon waits for the file to be removed, in seconds.
  private static let endPatience = 2.0
  /// Writes the file outside of the loop, because a disk may not answer.
  private static let fileQueue = DispatchQueue(label: "metrics file")

  private let log: EventLog
  private let mailbox: DaemonMessage.Mailbox
  private let lastFileError = SharedError()
  private var socket: MetricsSocket?
  /// When the file is written next; `nil` without one.
  private(set) var fileDue: Instant?

  private final class SharedError: Sendable {
    private let error = Mutex<InstarError?>(nil)

    /// - Returns: whether the error is another one than before.
    func replace(by new: InstarError?) -> Bool {
      error.withLock { error in
        defer { error = new }
        return error?.cause != new?.cause
      }
    }
  }

  init(log: EventLog, mailbox: DaemonMessage.Mailbox) {
    self.log = log
    self.mailbox = mailbox
  }

  var settings = MetricsSettings() {
    didSet {
      // Also a socket that could not be opened is tried again.
      if settings.address != oldValue.address || socket == nil { listen() }
      if settings.textFile != oldValue.textFile, let old = oldValue.textFile { Self.remove(old) }
      fileDue = settings.textFile.map { _ in .now }
    }
  }

  private mutating func listen() {
    socket?.close()
    socket = nil
    guard let address = settings.address else { return }
    do throws(InstarError) {
      socket = try MetricsSocket(at: address) { [mailbox] reply in
        if case .enqueued = mailbox.yield(.metricsWanted(reply)) { true } else { false }
      }
    } catch {
      log.post(.problem(error))
    }
  }

  func isFileDue(at now: Instant) -> Bool { fileDue.map { $0 <= now } ?? false }

  mutating func writeFile(_ text: String) {
    guard let file = settings.textFile else { return }
    fileDue = .now + Self.fileInterval
    Self.fileQueue.async { [log, lastFileError] in
      do throws(InstarError) {
        // node_exporter has another user.
        try DurableFile.write(Data(text.utf8), to: file, mode: 0o644)
        _ = lastFileError.replace(by: nil)
      } catch {
        let folder = file.parentFolder
        let command =
          access(folder, F_OK) == 0 || errno != ENOENT
          ? "let the user of instard write the folder"
          : "as root, run: install -d -o instar \(CommandText.quoted(folder))"
        let failure = InstarError(
          .metricsFailed, error.what, cause: error.cause,
          next: "\(command); then run: instarctl config apply")
        if lastFileError.replace(by: failure) { log.post(.problem(failure)) }
      }
    }
  }

  // A file that stays is old: its age is a metric of node_exporter.
  private static func remove(_ file: String) { fileQueue.async { unlink(file) } }

  func close() {
    socket?.close()
    guard let file = settings.textFile else { return }
    Self.remove(file)
    // The process ends next. A disk that does not answer must not keep it.
    let isRemoved = DispatchSemaphore(value: 0)
    Self.fileQueue.async { isRemoved.signal() }
    _ = isRemoved.wait(timeout: .now() + Self.endPatience)
  }
}
