import Foundation
import InstarLinux
public import InstarSchema

/// The regular check of backups.
extension StateFolder {
  /// Its time of change is when backups were last checked.
  private var checkFile: String { path + "/backups-checked" }

  /// Returns how long it is until backups are to be checked again: at most one interval, also after the clock was set
  /// back.
  public func timeToBackupCheck(every interval: Duration) -> Duration {
    guard let status = stat(following: checkFile) else { return .zero }
    let passed = Duration.seconds(Date().timeIntervalSince1970 - Double(status.st_mtim.tv_sec))
    return min(max(interval - passed, .zero), interval)
  }

  /// Records that backups were checked.
  public func noteBackupCheck() throws(InstarError) {
    // The file is never replaced: a crash would leave the new one under its temporary name.
    if utimensat(AT_FDCWD, checkFile, nil, AT_SYMLINK_NOFOLLOW) == 0 { return }
    try DurableFile.append(line: Data(), to: checkFile, mode: 0o600, owner: owner)
  }
}
