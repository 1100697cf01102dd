internal import Foundation
internal import InstarSchema

extension BackupReference {
  /// The bytes that work on the backup and its copy reads at most, for limits of time: the larger of the two files, or
  /// what is compressed in it, and the large values beside it.
  ///
  /// The backup may be much larger than the store now is, and a compressed copy is smaller than its content.
  package var bytesToRead: Int64 {
    let files = [path, copy].compactMap(\.self).map(Self.space)
    let manifest = manifest?.plausible
    let content = min(manifest?.bytes ?? 0, Self.mostBytesOfManifest)
    let values = min(manifest?.externalBytes ?? 0, Self.mostBytesOfManifest)
    return (files + [content]).reduce(0, max) + values
  }

  /// The owner of the store may write any number into a manifest, and must not keep the work on the backups of others
  /// waiting for days.
  private static let mostBytesOfManifest: Int64 = 64 << 30

  /// The space that a file takes: a file of holes has any size.
  private static func space(of file: String) -> Int64 {
    guard let status = stat(of: file) else { return 0 }
    return min(Int64(status.st_size), Int64(status.st_blocks) * 512)
  }
}
