import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("hold, release and what they advise")
struct HoldCommandTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    try folder.makeFolder("state")
  }

  private var state: String { folder.path("state") }

  private func run(_ arguments: String...) async throws
    -> CommandLineTool.Answer
  {
    try await CommandLineTool.run(arguments + ["--state-dir", state], in: folder.url)
  }

  @Test("what migrate refuses as no store is not held either")
  func noStore() async throws {
    let store = try BoxStore("fine", in: folder)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link.store"), withDestinationPath: store.path)
    try folder.makeFolder("folder.store")
    try folder.write("text, and no database of SQLite", to: "text.store")
    let refusals: [(String, InstarError.Code, Int32)] = [
      ("link.store", .unsafePath, 3), ("folder.store", .notAStore, 3),
      ("text.store", .notAStore, 3), ("missing.store", .missingStore, 5),
    ]
    for (name, code, status) in refusals {
      let answer = try await run("hold", "--why", "auditing", folder.path(name), "--json")
      #expect(answer.status == status, Comment(rawValue: name + answer.messages))
      #expect(try answer.objects(Line.self).first?.error?.code == code)
      #expect(!answer.messages.contains("note: instard.service does not see this hold"))
    }
    #expect(folder.names("state/holds") == [])
    // A damaged store is held: nobody should touch it.
    try truncate(store)
    #expect(try await run("hold", "--why", "damaged", store.path).status == 0)
    #expect(folder.names("state/holds").count == 1)
  }

  @Test(
    "a store is held before a keeper opens it, which may wait for a lock during a run's cutover")
  func holdBeforeProbe() async throws {
    let store = try BoxStore("fine", in: folder)
    // The keeper first notes the holds.
    let products = CommandLineTool.productsFolder.path
    try folder.makePrograms(
      keeper: """
        /bin/ls '\(state)/holds' > '\(folder.path("holds"))'
        exec '\(products)/instar-keeper' "$@"
        """)
    let answer = try await CommandLineTool.run(
      ["hold", "--why", "auditing", store.path, "--state-dir", state],
      environment: ["INSTAR_BUILD_DIR": folder.path("programs")])
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    #expect(try folder.text(of: "holds").contains(".json"))
  }

  @Test("an interrupted hold holds no further store, and each error names its store")
  func interrupted() async throws {
    let stores = try ["a", "b", "c"].map { try folder.write("not read", to: "\($0).store") }
    let marker = folder.path("probing")
    try folder.makePrograms(keeper: ": > '\(marker)'; exec /bin/sleep 600")
    let answer = try await CommandLineTool.run(
      ["hold", "--why", "audit", "--json", "--state-dir", state] + stores,
      environment: ["INSTAR_BUILD_DIR": folder.path("programs")]
    ) { pid in
      try await wait("the probe") { access(marker, F_OK) == 0 }
      #expect(kill(pid, SIGINT) == 0)
    }
    #expect(answer.status == 1, Comment(rawValue: answer.messages))
    let errors = try answer.objects(Line.self).compactMap(\.error)
    #expect(errors.map(\.store) == stores && errors.allSatisfy { $0.code == .interrupted })
    for (error, store) in zip(errors, stores) {
      #expect(error.what == "cannot hold '\(store)'" && error.state == "unchanged")
      let command = "instarctl hold --why 'audit' '\(store)' --state-dir '\(state)'"
      #expect(error.next == "run: \(command)")
    }
    #expect(folder.names("state/holds") == [])
  }

  private struct Line: Decodable {
    var error: InstarError?
  }

  private func truncate(_ store: BoxStore) throws {
    let file = try FileHandle(forUpdating: URL(filePath: store.path))
    let size = try file.seekToEnd()
    try file.truncate(atOffset: size / 2)
    try file.close()
  }

  @Test(
    "the release that an error advises works as it is typed, and one elsewhere says where it looked"
  )
  func advice() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("hold", "--why", "auditing", "./fine.store").status == 0)
    let release = "instarctl release '\(store.path)' --state-dir '\(state)'"
    for command in ["migrate", "plan"] {
      let refused = try await run(command, "--plugin", plugin, store.path)
      #expect(refused.status == 3)
      #expect((refused.output + refused.messages).contains(release))
    }
    let twice = try await run("hold", "--why", "again", store.path)
    #expect(twice.messages.contains(release))
    try folder.makeFolder("other")
    let elsewhere = try await CommandLineTool.run(
      "release", store.path, "--state-dir", folder.path("other"))
    #expect(elsewhere.output.contains("not held in '\(folder.path("other"))'"))
    #expect(try await run("release", store.path).status == 0)
    #expect(folder.names("state/holds") == [])
    let mistyped = try await run("release", "fin.store")
    #expect(mistyped.status == 5 && mistyped.messages.contains("the file does not exist"))
  }

  @Test("a restore without a backup says who may have it")
  func noBackup() async throws {
    let store = try BoxStore("fine", in: folder)
    let newest = try await run("restore", store.path)
    #expect(
      newest.messages.contains("instarctl restore --state-dir FOLDER '\(store.path)'   [I318]"))
    let moved = "if the store was moved, run with its old path: instarctl restore --to FILE OLD"
    #expect(newest.messages.contains(moved))
    let named = try await run("restore", "--run", "R1", store.path)
    #expect(
      named.messages.contains("instarctl backups list '\(store.path)' --state-dir '\(state)'"))
  }

  @Test("a damaged store is to be restored only where restore accepts a backup of it")
  func damaged() async throws {
    let store = try BoxStore("fine", in: folder)
    let migrated = BoxStore(path: folder.path("migrated.store"))
    try FileManager.default.copyItem(atPath: store.path, toPath: migrated.path)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", "--plugin", plugin, migrated.path).status == 0)
    for store in [store, migrated] { try truncate(store) }

    func migrate(_ store: BoxStore) async throws -> String {
      let answer = try await run("migrate", "--plugin", plugin, store.path)
      #expect(answer.status == 3, Comment(rawValue: answer.messages))
      return answer.messages
    }

    let ownBackup = "restore the store from a backup of your own"
    let refused = try await migrate(store)
    #expect(refused.contains(ownBackup), Comment(rawValue: refused))
    #expect(!refused.contains("instarctl restore"), Comment(rawValue: refused))
    let failed = try await run("history", store.path, "--json").objects(RunReport.self)
    #expect(failed.last?.error?.next?.contains(ownBackup) == true)

    let replacing = "'\(migrated.path)' --state-dir '\(state)' --to '\(migrated.path)'"
    #expect(try await migrate(migrated).contains(replacing))
  }

  @Test("a store that is damaged once more is to be restored from the backup that restore accepts")
  func damagedAgain() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", "--plugin", plugin, store.path).status == 0)
    let migration = try #require(
      try await run("history", store.path, "--json").objects(RunReport.self).last
    ).run
    func adviceOnDamage() async throws -> String {
      var bytes = try Data(contentsOf: URL(filePath: store.path))
      bytes.replaceSubrange(4096..<8192, with: Data(repeating: 0xFF, count: 4096))
      try bytes.write(to: URL(filePath: store.path))
      let answer = try await run("verify", "--plugin", plugin, store.path)
      #expect(answer.status == 3)
      return answer.output + answer.messages
    }

    let option = "'\(store.path)' --state-dir '\(state)'"
    let first = try await adviceOnDamage()
    #expect(first.contains("restore its newest backup: instarctl restore \(option)"), "\(first)")
    // This keeps the damaged content as the newest backup.
    #expect(try await run("restore", store.path).status == 0)
    let again = try await adviceOnDamage()
    #expect(again.contains("instarctl restore --run '\(migration)' \(option)"), "\(again)")
    #expect(try await run("restore", store.path).status == 3)
    #expect(try await run("restore", "--run", migration, store.path).status == 0)
    // The ledger still names the backups.
    try FileManager.default.removeItem(atPath: folder.path(".instar"))
    let lost = try await adviceOnDamage()
    #expect(lost.contains("restore the store from a backup of your own"), "\(lost)")
    #expect(!lost.contains("instarctl restore"), "\(lost)")
  }

  @Test("a keeper's advice about a lost backup names the state folder too")
  func lostBackup() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", "--plugin", plugin, store.path).status == 0)
    for name in folder.names(".instar") where name.hasSuffix(".backup") {
      try FileManager.default.removeItem(atPath: folder.path(".instar/\(name)"))
    }
    let verify = "instarctl backups verify '\(store.path)' --state-dir '\(state)'"
    for command in [["restore"], ["restore", "--to", "copy.store"]] {
      let answer = try await CommandLineTool.run(
        command + [store.path, "--state-dir", state], in: folder.url)
      #expect(
        answer.status == 5 && answer.messages.contains(verify), Comment(rawValue: answer.messages))
    }
  }

  @Test(
    "another user is told whose the state folder is, and that holds are not shown",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func otherUser() async throws {
    #expect(chmod(folder.path, 0o755) == 0)
    let store = try BoxStore("fine", in: folder)
    #expect(try await run("hold", "--why", "auditing", store.path).status == 0)
    #expect(chmod(store.path, 0o644) == 0 && chmod(state, 0o700) == 0)
    let refused: [[String]] = [
      ["hold", "--why", "mine"], ["release"], ["restore"],
    ]
    for command in refused {
      let output = try await asOther(command + [store.path])
      #expect(output.contains("cannot use the state folder '\(state)'"), Comment(rawValue: output))
      #expect(output.contains("Permission denied") && output.contains("as root"))
    }
    for command in [["backups", "list"], ["backups", "verify"], ["backups", "prune"]] {
      let output = try await asOther(command + [store.path])
      #expect(output.contains("as root, with --state-dir '\(state)'"), Comment(rawValue: output))
    }
    let probed = try await asOther(["probe", store.path])
    #expect(probed.contains("warning: a hold would not be shown"), Comment(rawValue: probed))
  }

  @Test(
    "whoever may not look into a store's folder does not see its hold as one of a replaced file",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func unreadableFolder() async throws {
    #expect(chmod(folder.path, 0o755) == 0)
    try folder.makeFolder("private")
    let store = folder.path("private/a.store")
    try FileManager.default.moveItem(
      atPath: try BoxStore("fine", in: folder).path, toPath: store)
    #expect(try await run("hold", "--why", "auditing", store).status == 0)
    #expect(chmod(folder.path("private"), 0o700) == 0)
    for path in ["state", "state/holds"] { #expect(chmod(folder.path(path), 0o755) == 0) }
    for name in folder.names("state/holds") {
      #expect(chmod(folder.path("state/holds/\(name)"), 0o644) == 0)
    }
    let listed = try await asOther(["hold"])
    #expect(listed.contains(store) && !listed.contains("moved or replaced"), "\(listed)")
  }

  /// Runs `instarctl` as a user who is nobody's owner here, and returns all that it prints.
  private func asOther(_ arguments: [String]) async throws -> String {
    let child = try ChildProcess.start(
      executable: "/usr/bin/setpriv",
      arguments: [
        "--reuid=4666", "--regid=4666", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
      ] + arguments + ["--state-dir", state],
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    _ = try child.wait()
    return child.capturedOutput
  }
}

extension TemporaryFolder {
  /// Makes `programs`, a build folder for `INSTAR_BUILD_DIR` with a keeper of its own.
  ///
  /// - Parameter script: Of that keeper, for the shell.
  func makePrograms(keeper script: String) throws {
    try makeFolder("programs")
    let products = CommandLineTool.productsFolder.path
    for name in ["instar-worker", "libInstar.so"] {
      try FileManager.default.createSymbolicLink(
        atPath: path("programs/\(name)"), withDestinationPath: "\(products)/\(name)")
    }
    try write("#!/bin/sh\n\(script)\n", to: "programs/instar-keeper", mode: 0o755)
  }
}
