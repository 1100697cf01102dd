import InstarSchema
import InstarStore

extension ModelContext {
  /// Tells operators how far the closure of a stage is, and the closure whether it is to stop.
  public var progress: StageProgress { StageProgress(meter: meter) }
}

/// Tells operators how far the closure of a stage is. They see it on the terminal, in the journal and in
/// `systemctl status`.
///
/// `ModelContext.enumerate` reports its rows by itself. Name other work that takes more than a second:
///
/// ```swift
/// didMigrate: { context in
///   let tags = try context.fetch(FetchDescriptor<NotesV2.Tag>())
///   context.progress.begin("tags merged", total: tags.count)
///   for tag in tags {
///     try context.progress.checkCancellation()
///     try merge(tag, in: context)
///     context.progress.advance()
///   }
/// }
/// ```
///
/// Nothing is reported in the first second of a piece of work, and then at most twice a second. Outside the closures of
/// a stage, nothing is reported at all.
public struct StageProgress {
  /// `nil` outside the closures of a stage, and in contexts that a closure creates.
  let meter: WorkMeter?

  /// Begins a piece of work. It takes the place of the one before, and ends with the closure at the latest.
  ///
  /// - Parameters:
  ///   - what: What is counted, as in "120 of 5,000 tags merged".
  ///   - total: How many there are, if that is known.
  public func begin(_ what: String, total: Int? = nil) { meter?.beginNamed(what, total: total) }

  /// Adds to how many are done since `begin(_:total:)`.
  public func advance(by count: Int = 1) { meter?.advanceNamed(by: count) }

  /// Ends the piece of work.
  public func end() { meter?.endNamed() }

  /// Whether the run is to stop: an operator interrupted it, or the service stops. In an app, whether the task that
  /// opens the container was canceled. The store stays at its old version.
  ///
  /// A closure that does not ask is ended a moment later.
  public var isCancelled: Bool { meter?.isCanceled ?? Task.isCancelled }

  /// - Throws: `CancellationError` if the run is to stop.
  public func checkCancellation() throws {
    if isCancelled { throw CancellationError() }
  }
}
