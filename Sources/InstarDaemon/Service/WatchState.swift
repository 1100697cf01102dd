import InstarLinux
import InstarSchema
import Synchronization

/// What `WatchedFolders` knows of one watch, and which of its questions about the watch have no answer yet.
///
/// Four properties say that the watch is not read as it should be. More than one of them may hold:
///
/// - `isUnread`: its first whole scan under this configuration has not ended. Nobody knows which stores are missing.
/// - `isSilent`: a whole scan took no step for `WatchedFolders.patience`. Nobody waits for that scan any more.
/// - `unanswered`: there was no answer about a store or folder in it. Such a question costs the loop a second, so that
///   the loop asks no other one.
/// - `unreadable`: the last whole scan could not read its folder, or the watch is silent. Operators see the reason.
///
/// Invariants:
/// - The end of a whole scan ends `isUnread` and `isSilent`, and decides whether the watch is `unreadable`. It ends
///   `unanswered` if it asked the same question.
/// - A silent watch is `unreadable`.
/// - A whole scan is in progress while the watch is silent or `unanswered`. Right after a reload, it is about to begin.
/// - A reload keeps `isSilent` and `unanswered`. So the start of the next configuration asks such a watch nothing.
struct WatchState {
  var isUnread = true
  var isSilent = false
  var unanswered: String?
  var unreadable: InstarError?

  /// Whether a whole scan is in progress.
  var isBeingScanned = false
  /// Whether another whole scan must follow the one in progress.
  var mustBeScannedAgain = false
  /// While some of its folders are being scanned, the folders that follow; else `nil`. So a folder that changes all the
  /// time has one place in the queue.
  var nextParts: Set<String>?
  let activity: ScanActivity

  /// Its folder as in a `StorePath`, as far as that is known.
  var realFolder: String?
  /// What is mounted above and below it.
  var mounts: [MountWatch.Mount] = []
  /// The folders that were read, and those of them that the kernel cannot watch.
  var known: Set<String> = []
  var polled: Set<String> = []
  /// The problems that were reported.
  var problems: Set<InstarError> = []

  /// A watch that is to be read.
  ///
  /// - Parameter previous: The state of the same watch under the configuration before.
  init(after previous: WatchState?) {
    // A scan of the configuration before that is late keeps those of this one waiting, so its steps count here too.
    activity = previous?.activity ?? ScanActivity()
    unanswered = previous?.unanswered
    guard let previous, previous.isSilent else { return }
    isSilent = true
    unreadable = previous.unreadable
    problems = previous.problems
  }

  /// Records the end of a whole scan.
  mutating func end(_ scan: WatchedFolders.Scan) {
    isUnread = false
    isSilent = false
    isBeingScanned = false
    mustBeScannedAgain = false
    realFolder = scan.realFolder
    mounts = scan.mounts
    // What became unanswered during the scan is asked by the next one.
    if unanswered == scan.answered { unanswered = nil }
  }
}

/// When the scan of a watch took its last step: it began, or came to the next folder or file. A scan of many stores
/// takes long; one that takes no step waits for its file system.
final class ScanActivity: Sendable {
  private let step = Mutex<ContinuousClock.Instant?>(nil)

  /// `nil` while the watch is not scanned.
  var lastStep: ContinuousClock.Instant? { step.withLock(\.self) }

  func noteStep() { step.withLock { $0 = .now } }

  func noteEnd() { step.withLock { $0 = nil } }
}
