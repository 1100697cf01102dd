internal import Instar
internal import Synchronization

/// A new folder for the stores of one test. It is removed when nobody uses it any more.
final class ScratchFolder: Sendable {
  private let place: MigrationTest.StorePlace
  private let state = Mutex<(path: String?, count: Int)>((nil, 0))

  init(in place: MigrationTest.StorePlace) { self.place = place }

  deinit {
    // What stays is in the folder for temporary files.
    if let path = state.withLock({ $0.path }) { try? FileManager.default.removeItem(atPath: path) }
  }

  /// The URL of a store that does not exist yet, in a folder of its own.
  func newStore() throws -> URL {
    let number = state.withLock { state in
      state.count += 1
      return state.count
    }
    let folder = try path() + "/\(number)"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    return URL(fileURLWithPath: folder + "/test.store")
  }

  private func path() throws -> String {
    try state.withLock { state in
      if let path = state.path { return path }
      let temporary = try parent()
      var template = Array(temporary.appendingPathComponent("instar-test-XXXXXX").path.utf8CString)
      guard mkdtemp(&template) != nil else {
        throw InstarError(
          .internalError, "cannot make a folder for a test in '\(temporary.path)'",
          cause: String(cString: strerror(errno)))
      }
      let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      state.path = path
      return path
    }
  }

  private func parent() throws -> URL {
    switch place {
    case .disk: return FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    case .memory:
      let path = "/dev/shm"
      let mounts = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
      let isInMemory = mounts.split(separator: "\n").contains { line in
        let fields = line.split(separator: " ")
        return fields.count > 2 && fields[1] == path && fields[2] == "tmpfs"
      }
      guard isInMemory else {
        throw InstarError(
          .internalError, "cannot make a folder for a test in memory",
          cause: "'\(path)' is not a file system in memory",
          next: "run: mount -t tmpfs tmpfs \(path); or write MigrationTest(…, in: .disk)")
      }
      return URL(fileURLWithPath: path, isDirectory: true)
    }
  }

  /// Where a store keeps large values in files.
  static func supportFolder(of store: URL) -> URL {
    let name = store.deletingPathExtension().lastPathComponent
    return store.deletingLastPathComponent().appendingPathComponent(".\(name)_SUPPORT")
  }
}

/// The package that a test's source belongs to.
enum PackageFolder {
  /// The file at a path, which begins at the folder of `Package.swift` unless it is absolute; without a package, at the
  /// source's own folder.
  static func url(of path: String, from source: String) -> URL {
    if path.hasPrefix("/") { return URL(fileURLWithPath: path) }
    let own = URL(fileURLWithPath: source).deletingLastPathComponent()
    var folder = own
    while folder.path != "/" {
      let manifest = folder.appendingPathComponent("Package.swift")
      if FileManager.default.fileExists(atPath: manifest.path) {
        return folder.appendingPathComponent(path)
      }
      folder.deleteLastPathComponent()
    }
    return own.appendingPathComponent(path)
  }
}

/// Random numbers that are the same for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
