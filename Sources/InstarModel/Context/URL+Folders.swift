public import Foundation

/// Folders that Foundation has on Apple's platforms, by the names of Foundation on Linux. Apps describe their stores by
/// them: `ModelConfiguration(url: .documentsDirectory.appending(path: "notes.store"))`.
///
/// In the closure of a stage they are folders of the run, which nobody keeps: a plan can hand values from `willMigrate`
/// to `didMigrate` in a file there.
extension URL {
  #if !canImport(Darwin)
    /// The user's folder of documents.
    public static var documentsDirectory: URL { folder(.documentDirectory, "Documents") }

    /// The user's folder of data of applications.
    public static var applicationSupportDirectory: URL {
      folder(.applicationSupportDirectory, ".local/share")
    }

    /// The user's folder of files that can be made again.
    public static var cachesDirectory: URL { folder(.cachesDirectory, ".cache") }

    /// - Parameter path: Its path in the home folder, where Foundation names none.
    private static func folder(_ folder: FileManager.SearchPathDirectory, _ path: String) -> URL {
      FileManager.default.urls(for: folder, in: .userDomainMask).first
        ?? homeDirectory.appending(path: path, directoryHint: .isDirectory)
    }
  #endif
}
