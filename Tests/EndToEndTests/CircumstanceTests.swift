import Foundation
import GRDB
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("A store in unusual circumstances")
struct CircumstanceTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var state: [String] { ["--state-dir", folder.path("state"), "--json"] }

  private func migrate(_ store: BoxStore, _ more: String...) async throws -> RunReport {
    let plugin = try await FixturePlugins.boxes.value
    let answer = try await CommandLineTool.run(
      ["migrate", store.path, "--plugin", plugin] + state + more)
    return try #require(
      try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
  }

  /// Runs a shell script in a mount name space of its own, then a migration of the store that it leaves in `$STORE`.
  private func migrate(_ store: BoxStore, afterMounting script: String) async throws -> RunReport {
    let plugin = try await FixturePlugins.boxes.value
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/unshare")
    process.arguments =
      [
        "--mount", "sh", "-ec",
        "STORE=\"$1\"; FOLDER=$(dirname \"$1\"); shift; \(script); exec \"$@\" \"$STORE\"",
        "sh", store.path, CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
        "migrate", "--plugin", plugin,
      ] + state
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return try JSONDecoder().decode(RunReport.self, from: text)
  }

  private static func succeeds(_ program: String, _ arguments: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  static let canMount = geteuid() == 0 && succeeds("/usr/bin/unshare", "--mount", "true")

  /// Whether a file system can be mounted from a file: not where the kernel offers no loop devices.
  static let canMountImages =
    canMount
    && probe { path in
      truncate(path, 1 << 20) == 0 && succeeds("/usr/sbin/mkfs.ext4", "-q", path)
        && succeeds("/usr/bin/unshare", "--mount", "mount", "-o", "loop", path, "/mnt")
    }

  /// Calls `body` with an empty file in a folder like those of the tests.
  private static func probe(_ body: (_ path: String) -> Bool) -> Bool {
    guard let folder = try? TemporaryFolder(), let path = try? folder.write("", to: "probe") else {
      return false
    }
    return withExtendedLifetime(folder) { body(path) }
  }

  // MARK: Attributes

  private static let accessList = ExtendedAttributes.accessList(of: 65534, permissions: 4)

  static let hasAttributes = probe { path in
    ExtendedAttributes.set("user.note", Array("mine".utf8), of: path)
      && ExtendedAttributes.set("system.posix_acl_access", accessList, of: path)
  }

  static let hasFlags = probe { path in
    ["i", "a"].allSatisfy {
      succeeds("/usr/bin/chattr", "+" + $0, path) && succeeds("/usr/bin/chattr", "-" + $0, path)
    }
  }

  @Test(
    "each way of the cutover and a restore keep a store's mode, owner, access control list, attributes and SELinux label",
    .enabled(if: hasAttributes, "the file system has no such attributes"),
    arguments: ["delete", "wal"], CutoverKind.allCases)
  func attributes(journalMode: String, cutover: CutoverKind) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: journalMode)
    try #require(ExtendedAttributes.set("user.note", Array("mine".utf8), of: store.path))
    try #require(
      ExtendedAttributes.set("system.posix_acl_access", Self.accessList, of: store.path))
    var names = ["user.note", "system.posix_acl_access"]
    // Root may set a label where the kernel does not use it.
    let label = Array("system_u:object_r:app_data_t:s0\0".utf8)
    if geteuid() == 0, ExtendedAttributes.set("security.selinux", label, of: store.path) {
      names.append("security.selinux")
    }
    func attributes() throws -> [String] {
      var status = stat()
      try #require(lstat(store.path, &status) == 0)
      return try ["\(status.st_mode)", "\(status.st_uid)", "\(status.st_gid)"]
        + names.map { try #require(ExtendedAttributes.value($0, of: store.path)) }
        + (cutover == .writeBack ? ["\(status.st_ino)"] : [])
    }
    let before = try attributes()
    let report = try await migrate(store, "--cutover", cutover.rawValue)
    #expect(report.result == .migrated && report.cutover == cutover, "\(report.notes)")
    #expect(try attributes() == before)
    let restored = try await CommandLineTool.run(["restore", store.path] + state)
    #expect(restored.status == 0, Comment(rawValue: restored.output))
    #expect(try attributes() == before)
  }

  @Test(
    "if the default access control list of a folder lets others read, they cannot read the backups in it",
    .enabled(if: hasAttributes, "the file system has no such lists"))
  func defaultList() async throws {
    let store = try BoxStore("fine", in: folder)
    let list = ExtendedAttributes.accessList(of: 65534, permissions: 7)
    try #require(ExtendedAttributes.set("system.posix_acl_default", list, of: folder.path))
    let report = try await migrate(store)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    for path in [folder.path(".instar"), try #require(report.backup)] {
      var status = stat()
      #expect(lstat(path, &status) == 0 && status.st_mode & 0o077 == 0, "\(path)")
    }
  }

  @Test(
    "a store that nobody may change is refused with the flag to remove, and is unchanged",
    .enabled(if: hasFlags, "only root may set these flags, and not in each file system"),
    arguments: [("i", "immutable"), ("a", "append-only")], ["fine.store", ".", ".instar"])
  func flags(flag: (letter: String, name: String), place: String) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    let path = place == "." ? folder.path : folder.path(place)
    if place == ".instar" { try #require(mkdir(path, 0o700) == 0) }
    try FileManager.default.createDirectory(
      atPath: folder.path("state"), withIntermediateDirectories: false)
    let before = try #require(FileManager.default.contents(atPath: store.path))
    try #require(Self.succeeds("/usr/bin/chattr", "+" + flag.letter, path))
    defer { _ = Self.succeeds("/usr/bin/chattr", "-" + flag.letter, path) }
    let report = try await migrate(store)
    #expect(report.result == (place == ".instar" ? .failed : .refused))
    #expect(report.error?.state == "unchanged" && report.leftovers == nil)
    #expect(report.error?.cause.hasSuffix("is \(flag.name)") == true)
    #expect(report.error?.next == "run as root: chattr -\(flag.letter) '\(path)'")
    #expect(FileManager.default.contents(atPath: store.path) == before)
    try #require(Self.succeeds("/usr/bin/chattr", "-" + flag.letter, path))
    #expect(try await migrate(store).result == .migrated)
  }

  // MARK: System calls that fail

  private static let strace = "/usr/bin/strace"

  /// Runs `instarctl` with system calls that fail in each of its processes.
  ///
  /// - Parameter fault: As strace(1) has it after `inject=`.
  private func run<Report: Decodable>(
    injecting fault: String, _ arguments: [String]
  ) throws -> Report {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: Self.strace)
    process.arguments =
      [
        "-f", "-o", "/dev/null", "-e", "trace=\(fault.prefix { $0 != ":" })", "-e",
        "inject=\(fault)",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
      ] + arguments + state
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return try JSONDecoder().decode(Report.self, from: text)
  }

  /// Reads of a process, counted from its start. The first ones are the loader's and those of the plugin.
  private static let reads = [8, 20, 40, 80, 120, 160, 200, 260, 320, 400]

  @Test(
    "a store is not damaged because one read failed, nor is the plan to blame",
    .enabled(if: access(strace, X_OK) == 0, "strace stands in for a disk that fails"))
  func failedReads() async throws {
    var failures = 0
    for read in Self.reads {
      // Each with a folder of its own.
      if try await CircumstanceTests().expectTruth(whereReadFails: read) { failures += 1 }
    }
    #expect(failures > 0, "no run met a failed read")
  }

  /// Expects a true report of a run, one of whose reads fails.
  ///
  /// - Returns: Whether the run failed.
  private func expectTruth(whereReadFails read: Int) async throws -> Bool {
    let store = try BoxStore("fine", boxes: 12_000, in: folder, journalMode: "delete")
    let before = try #require(FileManager.default.contents(atPath: store.path))
    let plugin = try await FixturePlugins.boxes.value
    let fault = "pread64:error=EIO:when=\(read)"
    let verification: VerificationReport = try run(
      injecting: fault, ["verify", store.path, "--plugin", plugin])
    #expect(verification.state != .damaged, "\(verification.errors)")

    let report: RunReport = try run(
      injecting: fault, ["migrate", store.path, "--plugin", plugin])
    if let error = report.error {
      #expect(error.code == .unreadableStore && error.provesDamage == nil, "\(error)")
      #expect(error.next?.contains("journalctl -k") == true, "\(error)")
      #expect(error.state == "unchanged" && report.leftovers == nil, "\(error)")
      #expect(FileManager.default.contents(atPath: store.path) == before)
      #expect(folder.names(".instar") == [])
    } else {
      #expect(report.result == .migrated)
    }
    return report.error != nil
  }

  @Test(
    "a sound backup is not called damaged because one read of it failed",
    .enabled(if: access(strace, X_OK) == 0, "strace stands in for a disk that fails"))
  func failedReadsOfBackup() async throws {
    struct Backup: Decodable { let state: String }
    let store = try BoxStore("fine", boxes: 12_000, in: folder, journalMode: "delete")
    #expect(try await migrate(store).result == .migrated)
    var states: Set<String> = []
    for read in Self.reads {
      let backup: Backup = try run(
        injecting: "pread64:error=EIO:when=\(read)", ["backups", "verify", store.path])
      #expect(["sound", "unreadable"].contains(backup.state), "read \(read): \(backup)")
      states.insert(backup.state)
    }
    #expect(states.contains("unreadable"), "no read of the backup failed")
  }

  @Test(
    "a restore of a sound store can be undone although one read of it failed",
    .enabled(if: access(strace, X_OK) == 0, "strace stands in for a disk that fails"),
    arguments: reads + [500, 550, 600, 650, 700])
  func failedReadOfRestore(read: Int) async throws {
    let store = try BoxStore("fine", boxes: 12_000, in: folder, journalMode: "delete")
    #expect(try await migrate(store).result == .migrated)
    let restore: RunReport = try run(
      injecting: "pread64:error=EIO:when=\(read)", ["restore", store.path])
    guard restore.result == .restored else {
      #expect(restore.error != nil && (restore.manifest?.check ?? "ok") == "ok", "\(restore)")
      return
    }
    #expect(restore.manifest?.check == "ok", "\(restore)")
    let undo = try await CommandLineTool.run(["restore", store.path] + state)
    #expect(undo.status == 0, Comment(rawValue: undo.output))
  }

  @Test("a store that is larger than files may be is unchanged, and the error names the limit")
  func fileSizeLimit() async throws {
    let store = try BoxStore("fine", boxes: 12_000, in: folder, journalMode: "delete")
    let before = try #require(FileManager.default.contents(atPath: store.path))
    let answer = try await Program.run(
      "/bin/bash",
      [
        "-c", #"ulimit -f "$1"; shift; exec "$@" 2>/dev/null"#, "bash", "\(before.count / 2048)",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "migrate",
        store.path, "--plugin", try await FixturePlugins.boxes.value,
      ] + state)
    let report = try JSONDecoder().decode(RunReport.self, from: Data(answer.messages.utf8))
    #expect(report.result == .failed && report.error?.code == .noSpace, "\(report)")
    #expect(report.error?.state == "unchanged" && report.leftovers == nil)
    #expect(
      report.error?.next?.contains("ulimit -f") == true, "\(String(describing: report.error))")
    #expect(FileManager.default.contents(atPath: store.path) == before)
    #expect(try await migrate(store).result == .migrated)
  }

  // MARK: Quota

  @Test(
    "a store whose owner has used up the quota is unchanged, with nothing left, and the error says so",
    .enabled(if: access(strace, X_OK) == 0, "strace stands in for a quota"),
    arguments: [1, 2, 4, 8, 16])
  func quota(firstWrite: Int) async throws {
    let store = try BoxStore("fine", boxes: 400, in: folder, journalMode: "delete")
    let before = try #require(FileManager.default.contents(atPath: store.path))
    // From one write on, each write of a process to a database fails. Its messages go out by another call. Later writes
    // are those of the cutover: a quota would let SQLite write old pages back, which strace does not.
    let report: RunReport = try run(
      injecting: "pwrite64:error=EDQUOT:when=\(firstWrite)+",
      ["migrate", store.path, "--plugin", try await FixturePlugins.boxes.value])
    #expect(report.result == .failed && report.error?.code == .noSpace, "\(report)")
    #expect(report.error?.state == "unchanged" && report.leftovers == nil)
    #expect(report.error?.next?.contains("quota") == true, "\(String(describing: report.error))")
    #expect(FileManager.default.contents(atPath: store.path) == before)
    #expect(folder.names(".instar") == [])
    #expect(try await migrate(store).result == .migrated)
  }

  // MARK: Mounts

  @Test(
    "a store on a file system that is mounted read-only is refused, and is unchanged",
    .enabled(if: canMount, "only root may mount"))
  func readOnly() async throws {
    let inner = try TemporaryFolder()
    let store = try BoxStore("fine", in: inner)
    let before = try inner.contents()
    let report = try await migrate(
      store,
      afterMounting: #"mount --bind "$FOLDER" "$FOLDER"; mount -o remount,ro,bind "$FOLDER""#)
    #expect(report.result == .refused && report.error?.state == "unchanged")
    #expect(report.error?.cause.contains("is read-only") == true)
    #expect(report.error?.next?.contains("findmnt --target") == true)
    #expect(try inner.contents() == before)
  }

  @Test(
    "a store whose file is mounted under another name is refused: apps would use another journal",
    .enabled(if: canMount, "only root may mount"))
  func mountedFile() async throws {
    let store = try BoxStore("fine", in: folder)
    try Data().write(to: URL(filePath: folder.path("other.store")))
    let report = try await migrate(
      store,
      afterMounting: #"mount --bind "$STORE" "$FOLDER/other.store"; STORE="$FOLDER/other.store""#)
    #expect(report.result == .refused && report.error?.code == .unsafePath)
    #expect(report.error?.cause.hasPrefix("the file is a mount point") == true)
    #expect(try store.version() == Schema.Version(1, 0, 0))
  }

  @Test(
    "a store is migrated if the folder for its clone is another file system",
    .enabled(if: canMount, "only root may mount"))
  func otherFileSystem() async throws {
    let store = try BoxStore("fine", in: folder)
    // The mount ends with its name space; the store is read here.
    let report = try await migrate(
      store,
      afterMounting:
        #"mkdir -m 700 "$FOLDER/.instar"; mount -t tmpfs -o mode=700 none "$FOLDER/.instar""#)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test(
    "a store is migrated on each file system that can be made here",
    .enabled(if: canMountImages, "only root may mount, and not without loop devices"),
    arguments: ["ext4", "xfs"])
  func fileSystems(type: String) async throws {
    let store = try BoxStore("fine", in: folder)
    let image = folder.path("image")
    // The smallest size that mkfs.xfs accepts.
    try Data().write(to: URL(filePath: image))
    try #require(truncate(image, 300 << 20) == 0)
    try #require(Self.succeeds("/usr/sbin/mkfs.\(type)", "-q", image))
    let report = try await migrate(
      store,
      afterMounting: """
        mkdir "$FOLDER/mounted"; mount -o loop "$FOLDER/image" "$FOLDER/mounted"
        cp "$STORE" "$FOLDER/mounted/copy.store"; STORE="$FOLDER/mounted/copy.store"
        """)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.backup?.hasPrefix(folder.path("mounted/.instar/")) == true)
  }

  // MARK: State folders

  @Test(
    "a store whose run was killed is migrated although the state folder was lost, and nothing is left of that run"
  )
  func lostStateFolder() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    // What a run leaves that was killed while its worker worked.
    let left = folder.path(".instar/run-20260101T000000Z-000001/clone")
    try FileManager.default.createDirectory(
      atPath: left, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try FileManager.default.copyItem(atPath: store.path, toPath: left + "/fine.store")
    chmod(folder.path(".instar"), 0o700)
    let answer = try await CommandLineTool.run(
      ["migrate", store.path, "--plugin", plugin] + state)
    #expect(answer.status == 0, Comment(rawValue: answer.output))
    #expect(
      folder.names(".instar").map { ($0 as NSString).pathExtension } == ["backup", "json"])
  }

  @Test(
    "the state folder of another host does not change a store whose path has an open run there",
    arguments: Phase.allCases)
  func foreignStateFolder(phase: Phase) async throws {
    let store = try BoxStore("fine", in: folder)
    let before = try store.sizes()
    var record = PhaseRecord(
      run: "20260101T000000Z-000001", store: store.path, phase: phase, startedAt: 1000)
    record.from = Schema.Version(7, 0, 0)
    record.declaredVersion = record.from
    record.earlierFingerprint = "that of another store"
    record.to = Schema.Version(8, 0, 0)
    record.backup = folder.path(".instar/fine.store.20260101T000000Z-000001.backup")
    try FileManager.default.createDirectory(
      atPath: folder.path("state/phases"), withIntermediateDirectories: true)
    try WireCoder.line(record).write(
      to: URL(filePath: folder.path("state/phases/\(record.run).json")))
    // Without a plugin it recovers only.
    _ = try await CommandLineTool.run(["migrate", store.path] + state)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(try store.sizes() == before)
    #expect(folder.names("state/phases").filter { $0.hasSuffix(".json") } == [])
    #expect(try await migrate(store).result == .migrated)
  }

  @Test(
    "several supervisors that do not know of each other migrate a store once",
    arguments: ["delete", "wal"])
  func severalSupervisors(journalMode: String) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: journalMode)
    let plugin = try await FixturePlugins.boxes.value
    let results = try await withThrowingTaskGroup(of: RunReport?.self) { group in
      for number in 0..<4 {
        let state = folder.path("state-\(number % 3)")
        group.addTask {
          try await CommandLineTool.run(
            "migrate", store.path, "--plugin", plugin, "--state-dir", state, "--json",
            "--busy-timeout", "30s"
          ).objects(RunReport.self).first
        }
      }
      return try await group.reduce(into: [RunReport]()) {
        if let report = $1 { $0.append(report) }
      }
    }
    #expect(results.count == 4)
    #expect(results.count { $0.result == .migrated } == 1, "\(results.map(\.result))")
    for report in results where report.result != .migrated {
      // One that was inspected before the other's cutover finds another version under the lock.
      #expect(
        report.result == .current || report.error?.state == "unchanged",
        "\(String(describing: report.error))")
    }
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try store.sizes().count == 50)
    #expect(
      folder.names(".instar").map { ($0 as NSString).pathExtension } == ["backup", "json"])
  }
}
