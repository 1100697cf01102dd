internal import CInstar

/// What mode and owner of a file do not show.
package enum FileFlag: CaseIterable, Sendable {
  /// Nobody can change, rename or delete the file, root neither (`chattr +i`).
  case immutable
  /// Data can only be added at its end (`chattr +a`).
  case appendOnly
  /// Something is mounted at its path, such as another file.
  case mountPoint
  /// An access control list lets users do more than the mode says.
  case accessList

  private var bit: Int {
    switch self {
    case .immutable: INSTAR_FILE_IMMUTABLE
    case .appendOnly: INSTAR_FILE_APPEND_ONLY
    case .mountPoint: INSTAR_FILE_MOUNT_POINT
    case .accessList: INSTAR_FILE_ACCESS_LIST
    }
  }

  /// Returns the flags of a file or folder; none where there is no such file, or its file system does not say.
  package static func of(_ path: String) -> Set<FileFlag> {
    let bits = Int(max(instar_file_flags(path), 0))
    return Set(allCases.filter { bits & $0.bit != 0 })
  }
}
