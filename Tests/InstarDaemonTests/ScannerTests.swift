import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarDaemon

@Suite("Scanner")
struct ScannerTests {
  private let temporary: TemporaryFolder
  private var folder: String { temporary.path }

  init() throws { temporary = try TemporaryFolder() }

  /// In a container root may not.
  private static let canMount: Bool = {
    guard geteuid() == 0, let folder = try? TemporaryFolder(),
      mount("none", folder.path, "tmpfs", UInt(MS_RDONLY), nil) == 0
    else { return false }
    return umount(folder.path) == 0
  }()

  private func scan(_ folder: String, recursive: Bool = false, patterns: [String] = ["*.store"])
    throws -> [String]
  {
    let watch = Configuration.Watch(folder: folder, patterns: patterns, isRecursive: recursive)
    return try Scanner(watch: watch).scan { _ in nil }.stores
      .map { String($0.path.dropFirst(folder.count + 1)) }
  }

  @Test("regular files that match are stores; side files, hidden files and links are not")
  func candidates() throws {
    for name in [
      "a.store", "a.store-wal", "a.store-shm", "a.store-journal", ".hidden.store", "b.store~",
      "#c.store#", ".#d.store", "e.txt", "ü.store",
    ] { try temporary.write("x", to: name) }
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/link.store", withDestinationPath: folder + "/a.store")
    #expect(mkfifo(folder + "/fifo.store", 0o600) == 0)
    try FileManager.default.createDirectory(
      atPath: folder + "/folder.store", withIntermediateDirectories: false)
    #expect(try scan(folder) == ["a.store", "ü.store"])
    #expect(try scan(folder, patterns: ["*.txt", "a.*"]) == ["a.store", "e.txt"])
    #expect(try scan(folder, patterns: [".hid*"]) == [".hidden.store"])
  }

  @Test("folders below are entered only where asked, and never our own or a link")
  func recursion() throws {
    for path in ["b/deep", ".instar", ".a_SUPPORT", "b/.instar", "b/.2.store-litestream/ltx"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(path)", withIntermediateDirectories: true)
    }
    for path in [
      "1.store", "b/2.store", "b/deep/3.store", ".instar/4.store", ".a_SUPPORT/5.store",
      "b/.instar/6.store", "b/.2.store-litestream/ltx/7.store",
    ] { try temporary.write("x", to: path) }
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/loop", withDestinationPath: folder)
    #expect(try scan(folder) == ["1.store"])
    #expect(try scan(folder, recursive: true) == ["1.store", "b/2.store", "b/deep/3.store"])
  }

  @Test("only folders that match a pattern are entered, and only those at its end have stores")
  func folderPatterns() throws {
    for path in ["a/stores/deep", "b/stores", "b/other", ".c/stores", "d"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(path)", withIntermediateDirectories: true)
    }
    for path in [
      "0.store", "a/1.store", "a/stores/2.store", "a/stores/deep/3.store", "b/stores/4.store",
      "b/other/5.store", ".c/stores/6.store",
    ] { try temporary.write("x", to: path) }
    var watch = Configuration.Watch(folder: folder)
    watch.subfolders = ["*", "st?res"]
    func scan(from start: String? = nil) throws -> (stores: [String], entered: [String]) {
      var entered: [String] = []
      let stores = try Scanner(watch: watch).scan(from: start) {
        entered.append(String($0.dropFirst(folder.count)))
        return nil
      }.stores
      return (stores.map { String($0.path.dropFirst(folder.count + 1)) }, entered.sorted())
    }
    #expect(try scan().stores == ["a/stores/2.store", "b/stores/4.store"])
    // The folders above are watched too: a new one may match.
    #expect(try scan().entered == ["", "/a", "/a/stores", "/b", "/b/stores", "/d"])
    #expect(try scan(from: folder + "/b").stores == ["b/stores/4.store"])
    watch.isRecursive = true
    #expect(
      try scan().stores == ["a/stores/2.store", "a/stores/deep/3.store", "b/stores/4.store"])
    #expect(watch.holdsStores(in: "\(folder)/a/stores"))
    #expect(!watch.holdsStores(in: "\(folder)/a"))
    #expect("\(folder)/a/stores".isIn([folder]) && folder.isIn([folder]) && "/a".isIn(["/"]))
    #expect(!"\(folder)/a/stores".isIn([folder + "/b", folder + "/a/st"]) && !"/a".isIn(["/b"]))
  }

  @Test("a store belongs to the watch that names most levels of its path, of those it matches")
  func watchOfStore() {
    func watch(
      _ folder: String, _ subfolders: String..., pattern: String = "*.store",
      isRecursive: Bool = false
    ) -> Configuration.Watch {
      var watch = Configuration.Watch(
        folder: folder, patterns: [pattern], isRecursive: isRecursive)
      watch.subfolders = subfolders
      return watch
    }
    var configuration = Configuration()
    func path(of store: String) -> String? { configuration.watch(ofStore: store)?.path }

    configuration.watches = [
      watch("/srv", isRecursive: true), watch("/srv", "*", "stores"), watch("/srv/a/stores"),
      watch("/srv/b", isRecursive: true),
    ]
    #expect(path(of: "/srv/a/stores/1.store") == "/srv/a/stores")
    #expect(path(of: "/srv/c/stores/1.store") == "/srv/*/stores")
    #expect(path(of: "/srv/c/stores/deep/1.store") == "/srv")
    #expect(path(of: "/srv/b/stores/1.store") == "/srv/*/stores")
    #expect(path(of: "/srv/b/x/1.store") == "/srv/b")
    #expect(path(of: "/srv/1.store") == "/srv" && path(of: "/srv2/1.store") == nil)
    #expect(path(of: "/srv/a/stores/1.sqlite") == nil)

    configuration.watches = [
      watch("/srv/app"), watch("/srv", pattern: "*.sqlite", isRecursive: true),
    ]
    #expect(path(of: "/srv/app/1.store") == "/srv/app")
    #expect(path(of: "/srv/app/1.sqlite") == "/srv")
    #expect(path(of: "/srv/app/deep/1.store") == nil && path(of: "/srv/1.store") == nil)

    configuration.watches = [
      watch("/srv", "*", pattern: "*", isRecursive: true), watch("/srv/app", isRecursive: true),
      watch("/srv", isRecursive: true),
    ]
    #expect(path(of: "/srv/app/1.store") == "/srv/app")
    #expect(path(of: "/srv/app/deep/1.store") == "/srv/app")
    #expect(path(of: "/srv/app/1.sqlite") == "/srv/*")
    #expect(path(of: "/srv/other/deep/1.store") == "/srv/*")
    #expect(path(of: "/srv/1.store") == "/srv")

    configuration.watches = [
      watch("/srv", "*", "*"), watch("/srv", "*", "stores"), watch("/srv/x", "*", "*"),
      watch("/srv", "*", "b", "c"),
    ]
    #expect(path(of: "/srv/a/stores/1.store") == "/srv/*/stores")
    #expect(path(of: "/srv/a/other/1.store") == "/srv/*/*")
    #expect(path(of: "/srv/x/b/c/1.store") == "/srv/*/b/c")

    configuration.watches = [watch("/srv", pattern: "a*"), watch("/srv", pattern: "*.store")]
    configuration.watches[1].policy = .ask
    #expect(configuration.watch(ofStore: "/srv/b.store")?.policy == .ask)
    #expect(configuration.watch(ofStore: "/srv/a.sqlite")?.policy == .automatic)
    #expect(configuration.watch(ofStore: "/srv/b.sqlite") == nil)
  }

  @Test("a store below the target of a watched link is found at the link, even if the target is /")
  func watchedPaths() {
    var configuration = Configuration()
    configuration.watches = [
      Configuration.Watch(folder: "/link"), Configuration.Watch(folder: "/top"),
    ]
    func paths(_ realFolders: [String: String]) -> [String] {
      configuration.watchedPaths(of: ["/srv/a.store", "/srvb/a.store"], realFolders: realFolders)
    }
    #expect(paths(["/link": "/srv"]) == ["/link/a.store", "/srvb/a.store"])
    #expect(paths(["/top": "/"]) == ["/top/srv/a.store", "/top/srvb/a.store"])
  }

  @Test("a folder is announced before it is listed")
  func announcedFirst() throws {
    let watch = Configuration.Watch(folder: folder)
    let findings = try Scanner(watch: watch).scan { _ in
      _ = try? temporary.write("x", to: "late.store")
      return nil
    }
    #expect(findings.stores.map(\.path) == [folder + "/late.store"])
  }

  @Test("a folder that cannot be watched is listed nevertheless, and named")
  func unwatchable() throws {
    try temporary.write("x", to: "a.store")
    let problem = InstarError(.watchFailed, "cannot watch", cause: "the limit is reached")
    let findings = try Scanner(watch: .init(folder: folder)).scan { _ in problem }
    #expect(findings.stores.count == 1)
    #expect(findings.problems == [problem])
  }

  @Test("a folder that is not there is an error in words")
  func missing() {
    do {
      _ = try Scanner(watch: .init(folder: "/nonexistent")).scan { _ in nil }
      Issue.record("was scanned")
    } catch {
      #expect(error.code == .watchFailed)
      #expect(error.description.contains("cannot watch '/nonexistent'"))
      #expect(error.cause == "No such file or directory")
    }
  }

  @Test("a name that is not UTF-8 is left out and reported")
  func badName() throws {
    let descriptor = open(folder + "/\u{1}", O_CREAT | O_WRONLY, 0o600)
    close(descriptor)
    var bytes = Array((folder + "/x").utf8CString)
    bytes[bytes.count - 2] = CChar(bitPattern: 0xFF)
    #expect(rename(folder + "/\u{1}", bytes) == 0)
    let findings = try Scanner(watch: .init(folder: folder, patterns: ["*"])).scan { _ in nil }
    #expect(findings.stores.isEmpty)
    #expect(findings.problems.map(\.cause) == ["the file's name is not UTF-8"])
  }

  @Test("what has a store's name and is not a regular file is reported, and not opened")
  func planted() throws {
    #expect(symlink("/etc/passwd", folder + "/link.store") == 0)
    #expect(mkfifo(folder + "/fifo.store", 0o600) == 0)
    #expect(symlink("/etc/passwd", folder + "/link.txt") == 0)
    let findings = try Scanner(watch: .init(folder: folder)).scan { _ in nil }
    #expect(findings.stores.isEmpty)
    let user = ProcessIdentity.label(of: geteuid())
    #expect(
      findings.problems.map(\.cause)
        == [
          "a FIFO of user \(user), not a regular file",
          "a symbolic link of user \(user), not a regular file",
        ])
    #expect(findings.problems.allSatisfy { $0.code == .unsafePath })
  }

  @Test("some of many links with names of stores, and of names that are not UTF-8, are reported")
  func manyProblems() throws {
    func link(_ number: Int) -> Bool { symlink("x", folder + "/\(number).store") == 0 }
    func badName(_ byte: UInt8) -> Bool {
      var path = Array((folder + "/x").utf8CString)
      path[path.count - 2] = CChar(bitPattern: byte)
      return symlink("x", path) == 0
    }
    let watch = Configuration.Watch(folder: folder)
    #expect((0x80...0xFF).allSatisfy(badName))
    #expect((1..<Scanner.problemLimit).allSatisfy(link))
    var findings = try Scanner(watch: watch).scan { _ in nil }
    #expect(findings.problems.count == Scanner.problemLimit)
    #expect(!findings.hasMoreProblems)
    #expect(link(0))
    findings = try Scanner(watch: watch).scan { _ in nil }
    #expect(findings.problems.count == Scanner.problemLimit)
    #expect(findings.hasMoreProblems)
    var all = Scanner.Findings()
    all.add(findings)
    #expect(all.problems == findings.problems && all.hasMoreProblems)
  }

  @Test(
    "a folder whose file system is read-only is told, with the command that opens it",
    .enabled(if: Self.canMount, "this user may not mount"))
  func readOnly() throws {
    // /proc/sys is read-only in a container, /sys nearly everywhere; a mount of our own always.
    #expect(Scanner.writeProblem(of: folder) == nil)
    #expect(mount("none", folder, "tmpfs", UInt(MS_RDONLY), nil) == 0)
    defer { umount(folder) }
    let findings = try Scanner(watch: .init(folder: folder)).scan { _ in nil }
    let problem = try #require(findings.problems.first)
    #expect(problem.code == .watchFailed)
    #expect(problem.what == "cannot migrate the stores in '\(folder)'")
    #expect(problem.next == "run: instarctl config apply && systemctl restart instard")
    #expect(
      DaemonEvent.watchFailed(problem).entry.message.hasSuffix(
        "instarctl config apply && systemctl restart instard"))
  }

  @Test("a version tells who may write the file, or the folders above it, and the file's names")
  func ownership() throws {
    let path = folder + "/a.store"
    try temporary.write("x", to: "a.store")
    #expect(chmod(path, 0o600) == 0)
    let before = WatchedVersion(path: path)
    #expect(chmod(path, 0o660) == 0)
    #expect(WatchedVersion(path: path) != before)
    #expect(chmod(path, 0o600) == 0)
    #expect(WatchedVersion(path: path) == before)
    #expect(link(path, folder + "/b.store") == 0)
    #expect(WatchedVersion(path: path) != before)
    #expect(unlink(folder + "/b.store") == 0)
    #expect(WatchedVersion(path: path) == before)
    #expect(chmod(folder, 0o770) == 0)
    #expect(WatchedVersion(path: path) != before)
  }

  @Test("a version tells size, time, identity and write-ahead log apart")
  func versions() throws {
    let path = folder + "/a.store"
    #expect(WatchedVersion(path: path) == nil)
    try temporary.write("x", to: "a.store")
    let first = WatchedVersion(path: path)
    #expect(first != nil && first == WatchedVersion(path: path))
    try temporary.write("x", to: "a.store-wal")
    let second = WatchedVersion(path: path)
    #expect(second != first)
    try temporary.write("xy", to: "a.store-wal")
    #expect(WatchedVersion(path: path) != second)
    try FileManager.default.removeItem(atPath: path + "-wal")
    #expect(WatchedVersion(path: path) == first)
    try FileManager.default.copyItem(atPath: path, toPath: folder + "/copy")
    #expect(rename(folder + "/copy", path) == 0)
    #expect(WatchedVersion(path: path) != first)
  }

  @Test(
    "a change of a side file is a change of its store",
    arguments: [
      ("a.store", "a.store"), ("a.store-wal", "a.store"), ("a.store-shm", "a.store"),
      ("a.store-journal", "a.store"), ("a.txt", nil), ("a.txt-wal", nil), (".a.store", nil),
      ("-wal", nil), ("", nil),
    ] as [(String, String?)])
  func sideFiles(name: String, store: String?) {
    let found = StoreName.store(of: name)
    #expect((StoreName.matches(found, patterns: ["*.store"]) ? found : nil) == store)
  }
}
