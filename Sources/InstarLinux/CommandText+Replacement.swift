import Glibc
package import InstarSchema

extension CommandText {
  /// Returns what to do about a store that SQLite cannot open, so that it can be neither locked nor copied: put the
  /// file aside, and write the backup of a run, which is checked, in its place. The log goes with the file: it may have
  /// the last changes of the app.
  package static func replacement(of store: String, byBackupOf run: String) -> String {
    let damaged = store + ".damaged"
    let (file, aside) = (quoted(store), quoted(damaged))
    let suffixes = ["", "-wal", "-shm", "-journal"].filter { suffix in
      var status = stat()
      return suffix.isEmpty || lstat(store + suffix, &status) == 0
    }
    let moves = suffixes.map { suffix in
      "mv --backup=numbered -T \(quoted(store + suffix)) \(quoted(damaged + suffix))"
    }
    return "stop the app, then run: \(moves.joined(separator: " && ")) && "
      + "\(restore(store, run: run)) --to \(file) && "
      + "chmod --reference=\(aside) \(file) && chown --reference=\(aside) \(file)"
  }
}
