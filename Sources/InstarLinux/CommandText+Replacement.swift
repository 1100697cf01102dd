import Glibc
package import InstarSchema

extension CommandText {
  /// Returns what to do about a store that is gone, or that SQLite cannot open, so that it can be neither locked nor
  /// copied: put its files aside, and write the backup of a run, which is checked, in its place. The log goes with the
  /// file: it may have the last changes of the app.
  package static func replacement(of store: String, byBackupOf run: String) -> String {
    let damaged = store + ".damaged"
    let (file, aside) = (quoted(store), quoted(damaged))
    var status = stat()
    let isMissing = lstat(store, &status) != 0 && errno == ENOENT
    let sideFiles = SideFile.allCases.map(\.rawValue).filter { lstat(store + $0, &status) == 0 }
    let moves = ((isMissing ? [] : [""]) + sideFiles).map { suffix in
      "mv --backup=numbered -T \(quoted(store + suffix)) \(quoted(damaged + suffix))"
    }
    var commands = moves + ["\(restore(store, run: run)) --to \(file)"]
    if !isMissing {
      commands += ["chmod --reference=\(aside) \(file)", "chown --reference=\(aside) \(file)"]
    }
    return (moves.isEmpty ? "run: " : "stop the app, then run: ")
      + commands.joined(separator: " && ")
  }
}
