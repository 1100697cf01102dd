import Foundation

/// Stores that Apple's frameworks wrote. They are not part of the project: `INSTAR_REAL_STORES` names their folder.
public enum RealStores {
  public static let folder: String? = ProcessInfo.processInfo.environment["INSTAR_REAL_STORES"]

  /// The paths of all of them, sorted; empty, with one loud line, where the folder is not given.
  public static let all: [String] = {
    guard let folder, let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
    else {
      FileHandle.standardError.write(
        Data(
          "INSTAR_REAL_STORES is not set: NOTHING is tested against stores of Apple's frameworks\n"
            .utf8))
      return []
    }
    return names.sorted().filter { !$0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
  }()

  /// Copies the store of that name into a folder: a store is never opened in place.
  public static func copy(_ name: String, to folder: TemporaryFolder) throws -> String? {
    guard let source = all.first(where: { $0.hasSuffix("/\(name)") }) else { return nil }
    let path = folder.path(name)
    try FileManager.default.copyItem(atPath: source, toPath: path)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    return path
  }
}
