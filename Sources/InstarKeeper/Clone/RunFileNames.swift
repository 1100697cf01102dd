internal import InstarLinux

/// The names of the folders and copies of runs beside stores.
///
/// Each run looks for those that dead runs of its store left in `.instar/`, which has two files for each store
/// beside it. So a keeper lists each `.instar/` once in ten seconds. Files that a run leaves
/// meanwhile are removed by its recovery, or by a later run.
package final class RunFileNames {
  private var known: [String: (names: [String], readAt: ContinuousClock.Instant)] = [:]
  private static let validity = Duration.seconds(10)
  private static let folderLimit = 1_000

  package init() {}

  /// Best effort: none where the folder cannot be listed.
  func all(in folder: String) -> [String] {
    let now = ContinuousClock.now
    if let known = known[folder], now - known.readAt < Self.validity { return known.names }
    let folders = (try? FolderNames.all(in: folder, prefix: "run-")) ?? []
    let copies = (try? FolderNames.all(in: folder, suffix: StorePaths.copySuffix)) ?? []
    let names = folders + copies
    if known.count >= Self.folderLimit { known = [:] }
    known[folder] = (names, now)
    return names
  }
}
