internal import Foundation
internal import InstarSchema
internal import InstarStore

/// Where a store is, and where the files of its runs are.
///
/// ```text
/// FOLDER/NAME                          the store
/// FOLDER/.instar/run-RUN/              one run: locked by its keeper, gone with it
/// FOLDER/.instar/run-RUN/clone/NAME    the only folder that a worker may write
/// FOLDER/.instar/run-RUN/backup
/// FOLDER/.instar/NAME.RUN.backup       the backup, from just before the store is written
/// FOLDER/.instar/NAME.RUN.files        the large values that the run gives to the store, until it has been written
/// FOLDER/.BASE_SUPPORT/                large values of the store in files; clone and backup have such folders too
/// ```
struct StorePaths {
  let folder: String
  let name: String

  var store: String { folder + "/" + name }
  var instarFolder: String { folder + "/.instar" }

  /// - Parameter store: An absolute path without symbolic links in its folders, as `StoreFile.path`
  ///   is.
  init(resolvedStore store: String) {
    let slash = store.lastIndex(of: "/") ?? store.startIndex
    folder = slash == store.startIndex ? "" : String(store[..<slash])
    name = store.isEmpty ? "" : String(store[store.index(after: slash)...])
  }

  func runFolder(_ run: String) -> String { "\(instarFolder)/run-\(run)" }
  func clone(_ run: String) -> String { "\(runFolder(run))/clone/\(name)" }
  func backup(_ run: String) -> String { backup(run, in: instarFolder) }
  func backup(_ run: String, in folder: String) -> String { "\(folder)/\(name).\(run).backup" }
  func fileList(_ run: String) -> String { "\(instarFolder)/\(name).\(run).files" }

  /// The folder in which Core Data keeps large values beside a store.
  var supportFolder: String { ExternalValues.supportFolder(ofStore: store) }
}
