internal import Foundation
internal import InstarSchema

/// A temporary folder that only this user can enter.
struct PrivateFolder {
  let path: String

  init() throws {
    let template = FileManager.default.temporaryDirectory.path + "/instar-XXXXXX"
    var name = Array(template.utf8CString)
    guard let made = mkdtemp(&name) else {
      throw InstarError(
        .unreadableStore,
        "cannot create a folder in '\(FileManager.default.temporaryDirectory.path)'",
        cause: String(cString: strerror(errno)),
        next: "free some space there, or set TMPDIR to another folder")
    }
    path = String(cString: made)
  }

  /// What cannot be removed stays in the folder for temporary files, which the system empties.
  func remove() {
    try? FileManager.default.removeItem(atPath: path)
  }
}
