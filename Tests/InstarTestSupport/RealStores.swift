import Foundation

/// Stores that Apple's frameworks wrote. They are not part of the project: `INSTAR_REAL_STORES` names their folder.
///
/// A suite or test that needs them is `.enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set")`.
public enum RealStores {
  /// Whether there are any; says so loudly, once, where the folder is not given.
  public static var areGiven: Bool { !all.isEmpty }

  /// The paths of all of them, sorted; empty where the folder is not given.
  public static let all: [String] = {
    guard let folder = ProcessInfo.processInfo.environment["INSTAR_REAL_STORES"],
      let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
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
  ///
  /// - Returns: The copy's path; `nil` where there is no such store.
  public static func copy(_ name: String, to folder: TemporaryFolder) throws -> String? {
    guard let source = all.first(where: { $0.hasSuffix("/\(name)") }) else { return nil }
    let path = folder.path(name)
    try FileManager.default.copyItem(atPath: source, toPath: path)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    return path
  }
}
