internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// The free space that a run needs beside the store, in bytes.
  ///
  /// Backup and clone take it, and what SQLite needs for the cutover: the rollback journal takes every page of the old
  /// store, the write-ahead log every page of the new one. So does the copy of the clone that a bridge reads.
  var neededBytes: Int64 {
    let copies: Int64 = path.stages.contains { $0.kind == .bridge } ? 4 : 3
    return (probe.file.state.size + (probe.file.log?.size ?? 0)) * copies + FileCopy.smallFiles
  }

  /// The reason to refuse a run that would fill the disk.
  func spaceFindings() -> [Finding] {
    do {
      try FileCopy.requireSpace(neededBytes, in: paths.folder)
      return []
    } catch {
      let known = InstarError(error, what: "cannot migrate the store")
      return [Finding(severity: .error, code: known.code, message: known.cause, fix: known.next)]
    }
  }
}
