import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// Finds backups in the folders `.instar` beside stores, by their manifests.
///
/// The folders belong to the owners of the stores, who may write anything there: a manifest says nothing about other
/// files than the backup beside it, and a restore does not do more than its owner can.
struct FoundBackups {
  /// In the order in which they were made, as their manifests say.
  let all: [ListedBackup]

  /// - Parameter stores: Their paths, as a `StorePath` has them.
  init(stores: Set<String>) {
    let folders = Set(stores.map(\.parentFolder))
    all = folders.flatMap { Self.backups(in: $0, of: stores) }
      .sorted { ($0.madeAt, $0.reference.run) < ($1.madeAt, $1.reference.run) }
  }

  private static func backups(in folder: String, of stores: Set<String>) -> [ListedBackup] {
    let prefix = folder == "/" ? "/" : folder + "/"
    // Where the folder cannot be listed, the ledger still names the backups.
    let names = try? FolderNames.all(in: prefix + InstarFolder.name, suffix: BackupManifest.suffix)
    return (names ?? []).compactMap { name in
      // Before its manifest is read: the folder may have the backups of thousands of other stores. A name is that of a
      // store, a dot and the run, and both may contain dots.
      let mayBeWanted = name.indices.contains {
        name[$0] == "." && stores.contains(prefix + name[..<$0])
      }
      guard mayBeWanted else { return nil }
      let backup = "\(prefix)\(InstarFolder.name)/\(name)"
      // A backup without a manifest is that of an open run.
      guard let manifest = manifest(ofBackup: backup),
        (try? RunIdentifier.require(manifest.run)) != nil
      else { return nil }
      let store = name.dropLast(BackupManifest.suffix.count + manifest.run.count + 1)
      guard stores.contains(prefix + store),
        name == "\(store).\(manifest.run)\(BackupManifest.suffix)"
      else { return nil }
      return ListedBackup(
        BackupReference(
          run: manifest.run, store: prefix + store, path: backup, manifest: manifest),
        madeAt: manifest.madeAt)
    }
  }

  private static let limitBytes = 64 << 10

  /// Anything may have the name of a manifest. What is not one is as good as none: the backup is then left alone.
  private static func manifest(ofBackup backup: String) -> BackupManifest? {
    let path = BackupManifest.path(ofBackup: backup)
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.isRegular,
      let data = try? file.read(upToCount: limitBytes)
    else { return nil }
    return (try? WireCoder.message(BackupManifest.self, from: data))?.plausible
  }
}
