internal import Foundation
internal import InstarStore

/// Who has a store open, for the message that it is busy.
enum StoreHolders {
  /// "1234 (notesd), 77 (sqlite3)": the other processes with a descriptor of the file. Best effort:
  /// those of other users can only be seen by root. Empty where none is seen.
  static func describe(_ path: String) -> String {
    var store = stat()
    guard lstat(path, &store) == 0 else { return "" }
    let own = getpid()
    var holders: [String] = []
    for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let pid = Int32(name), pid != own else { continue }
      let folder = "/proc/\(name)/fd"
      let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      let holdsStore = descriptors.contains { descriptor in
        var status = stat()
        return stat(folder + "/" + descriptor, &status) == 0 && status.st_dev == store.st_dev
          && status.st_ino == store.st_ino
      }
      guard holdsStore else { continue }
      let command = FileManager.default.contents(atPath: "/proc/\(name)/comm") ?? Data()
      let text = String(decoding: command, as: UTF8.self).filter { !$0.isNewline }
      holders.append("\(pid) (\(text))")
    }
    return holders.sorted().joined(separator: ", ")
  }
}
