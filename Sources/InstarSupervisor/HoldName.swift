import InstarLinux
import InstarSchema
import InstarWire

/// The name of a hold's file: `ID.PATH.DEVICE-INODE.json`. Where the content is damaged, the name still tells whose
/// hold it is, so that no other store has to wait for it.
struct HoldName {
  let text: String

  init(_ hold: Hold) {
    text = "\(hold.id).\(Self.digest(hold.store)).\(hold.device)-\(hold.inode).json"
  }

  init(file text: String) {
    self.text = text
  }

  /// Whether the hold may be that of a store, by its path or by its file. Every store may have one whose name says
  /// nothing.
  func mayBeOf(_ path: StorePath, file: FileOrigin?) -> Bool {
    let parts = text.split(separator: ".")
    guard parts.count == 4 else { return true }
    return parts[1] == Self.digest(path.text)
      || file.map { parts[2] == "\($0.device)-\($0.inode)" } == true
  }

  /// A hash of a path: names are limited to 255 bytes, paths are not. Two paths with one digest only share a refusal.
  static func digest(_ path: String) -> String { String(path.stableHash, radix: 16) }
}
