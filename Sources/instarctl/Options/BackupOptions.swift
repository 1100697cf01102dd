import ArgumentParser
import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire

/// The backups that a command is about.
struct BackupOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A store; without one, all stores.", valueName: "store"),
    completion: .file(), transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var state: StateOptions

  /// Finds the backups, oldest first, before the state folder is opened, which would make it.
  ///
  /// - Parameter verb: What is done with them, such as "list".
  /// - Returns: `missing` has a `missingStore` for each store that does not exist and that no backup is known of, and a
  ///   `timeLimit` for each store whose file system does not answer. Without named stores, for the first one in each
  ///   folder.
  /// - Throws: `missingFile` where nothing is found, because the named state folder does not exist.
  func backups(
    to verb: String
  ) throws(InstarError) -> (found: [ListedBackup], missing: [InstarError]) {
    let folder = state.forReading
    // Without the folder, the backups of a store that is named are found beside it.
    if stores.isEmpty { try state.requireNamed("cannot \(verb) backups") }
    var missing: [InstarError] = []
    func isAnswered(_ store: String) -> Bool {
      do throws(InstarError) {
        try FilePath.requireAnswer(about: store, to: "\(verb) the backups of")
        return true
      } catch {
        missing.append(error)
        return false
      }
    }
    var answers: [String: Bool] = [:]
    func isFolderAnswered(_ store: String) -> Bool {
      let folder = store.parentFolder
      let answer = answers[folder] ?? isAnswered(store)
      answers[folder] = answer
      return answer
    }
    let paths = FilePath.ofStores(stores).filter(isAnswered)
    let found =
      stores.isEmpty
      ? try folder.backups(below: "/", where: isFolderAnswered)
      : try folder.backups(ofAll: paths)
    if found.isEmpty { try state.requireNamed("cannot \(verb) backups") }
    let known = Set(found.map(\.reference.store))
    for path in paths where !known.contains(path) {
      do throws(InstarError) {
        try FilePath.requireStore(path, to: "\(verb) the backups of")
      } catch {
        missing.append(error)
      }
    }
    return (found, missing)
  }

  /// Says so if there is nothing to do: silence would look like success.
  func noteIfEmpty(_ backups: [ListedBackup], _ missing: [InstarError], _ output: OutputOptions) {
    for error in missing { output.report(error) }
    if backups.isEmpty, missing.isEmpty, !output.json {
      let owner =
        stores.count > 1 ? " of these stores" : stores.first.map { " of '\($0)'" } ?? ""
      Console.note("no backups\(owner) in the ledger of '\(state.path)'")
    }
  }
}
