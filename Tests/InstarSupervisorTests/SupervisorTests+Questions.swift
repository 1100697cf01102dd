import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

/// What a keeper is asked beside runs: probes, descriptions, checks of backups.
extension SupervisorTests {
  private func probe(
    _ stores: [String], with supervisor: Supervisor, endsAtDeath: Bool = false
  ) async throws -> [ProbeReport] {
    let reports = Mutex<[ProbeReport]>([])
    try await supervisor.probe(
      stores: stores, plans: [], rows: .none, endsAtDeath: endsAtDeath
    ) { report in
      reports.withLock { $0.append(report) }
    }
    return reports.withLock { $0 }
  }

  @Test("a keeper that dies over one store is replaced, and the others have their reports")
  func batch() async throws {
    let supervisor = try supervisor(
      """
      *'"stores":[]'*) \(try say(.done)) ;;
      *'"a","b","c"'*) \(try probed("a")); exit 9 ;;
      *'["c"]'*) \(try probed("c")); \(try say(.done)) ;;
      """)
    let seen = try await probe(["a", "b", "c"], with: supervisor)
    #expect(seen.map(\.store) == ["a", "b", "c"])
    #expect(seen.map(\.state) == [.current, .unknown, .current])
    #expect(seen[1].reason?.contains("exited with status 9") == true)
  }

  @Test(
    "a keeper that hangs over one store is ended, and the others have their reports if asked for",
    arguments: [false, true])
  func hangs(endsAtDeath: Bool) async throws {
    let supervisor = try supervisor(
      """
      *'"stores":[]'*) \(try say(.done)) ;;
      *'"a","b","c"'*) \(try probed("a")); trap '' TERM; listen ;;
      *'["c"]'*) \(try probed("c")); \(try say(.done)) ;;
      """, probeLimit: .seconds(3))
    let seen = try await probe(["a", "b", "c"], with: supervisor, endsAtDeath: endsAtDeath)
    #expect(seen.map(\.store) == (endsAtDeath ? ["a", "b"] : ["a", "b", "c"]))
    #expect(seen.map(\.state).prefix(3) == [.current, .unreadable, .current].prefix(seen.count))
    #expect(seen[1].error?.code == .unreadableStore)
    #expect(seen[1].reason?.contains("within 3 s") == true)
  }

  @Test("a keeper that has answered everything and does not end its batch is ended")
  func withheldEnd() async throws {
    let supervisor = try supervisor(
      "*'\"a\"'*) \(try probed("a")); trap '' TERM; listen ;;", probeLimit: .seconds(2))
    let reports = Mutex<[ProbeReport]>([])
    let result = await Task {
      try await supervisor.probe(stores: ["a"], plans: [], rows: .none) { report in
        reports.withLock { $0.append(report) }
      }
    }.result
    let error = try #require(throws: InstarError.self) { try result.get() }
    #expect(error.cause.contains("within 2 s") && error.state == "unchanged")
    #expect(reports.withLock { $0.map(\.store) } == ["a"])
  }

  @Test("a reply about another store is not believed")
  func otherSubject() async throws {
    var other = RunReport(run: run, store: "/home/other/b.store", result: .migrated, startedAt: 1)
    other.backup = "/home/other/backup"
    let supervisor = try supervisor(
      """
      *'"probe"'*) \(try say(.probed(EncodedProbeReport(ProbeReport(store: "b", state: .current))))) ;;
      *'"migrate"'*) \(try say(.finished(other))) ;;
      """)
    let reports = Mutex<[ProbeReport]>([])
    do {
      try await supervisor.probe(stores: ["a", "b"], plans: [], rows: .none) { report in
        reports.withLock { $0.append(report) }
      }
      Issue.record("it was believed")
    } catch {
      #expect(error.code == .protocolViolation)
    }
    #expect(reports.withLock { $0.isEmpty })

    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.store == store && report.result == .failed)
    #expect(report.error?.code == .protocolViolation && report.backup == nil)
  }

  @Test("each of many stores that kill their keeper has a report of its own")
  func deadlyStores() async throws {
    let supervisor = try supervisor("*'\"stores\":[]'*) \(try say(.done)) ;; *) exit 9 ;;")
    let stores = (1...5).map { "store \($0)" }
    let reports = try await probe(stores, with: supervisor)
    #expect(reports.map(\.store) == stores)
  }

  @Test("a keeper that never works is an error, not a report for each of many stores")
  func broken() async throws {
    let supervisor = try supervisor("*) exit 9 ;;")
    let result = await Task {
      try await supervisor.probe(
        // As many as one keeper probes.
        stores: (0..<99).map(String.init), plans: [], rows: .none
      ) { _ in }
    }.result
    #expect(throws: InstarError.self) { try result.get() }
    #expect(try log().count == 2)
  }

  @Test("plugins are described in order, with an error for the one that fails")
  func describe() async throws {
    let failure = InstarError(.notAPlugin, "cannot use 'b.so' as a plugin", cause: "it is text")
    let supervisor = try supervisor(
      "*) \(try say(.described(PluginManifest(plans: [])))); \(try say(.failed(failure))) ;;"
    )
    let descriptions = try await supervisor.describe(plugins: ["a.so", "b.so"])
    #expect(descriptions.map(\.plugin) == ["a.so", "b.so"])
    #expect(try descriptions[0].result.get() == PluginManifest(plans: []))
    #expect(throws: failure) { try descriptions[1].result.get() }
  }

  @Test("one keeper answers one request after the other")
  func reuse() async throws {
    let supervisor = try supervisor(
      "*) \(try say(.described(PluginManifest(plans: [])))) ;;")
    for _ in 0..<3 { _ = try await supervisor.describe(plugins: ["a.so"]) }
    #expect(try log().filter { $0 != "ended" }.count == 1)
  }

  @Test("a keeper that is missing is an error with its path")
  func missing() async throws {
    let supervisor = try supervisor("*) ;;")
    #expect(unlink(supervisor.installation.keeper) == 0)
    let result = await Task { try await supervisor.migrate(request) { _ in } }.result
    let error = try instarError { _ = try result.get() }
    #expect(error.code == .incompleteInstallation)
    #expect(error.what.contains(supervisor.installation.keeper))
    #expect(try phaseFiles() == [])
  }

  @Test("a backup of holes has no more time than its blocks take, whatever its size")
  func sparseBackup() async throws {
    let backup = try folder.write("", to: "a.store.\(run).backup", mode: 0o600)
    #expect(truncate(backup, 1 << 43) == 0)
    let supervisor = try supervisor(
      "*) sleep 5; \(try say(.done)) ;;", probeLimit: .milliseconds(300))
    let reference = BackupReference(run: run, store: store, path: backup, manifest: nil)
    await #expect(throws: InstarError.self) { try await supervisor.handle(reference, .verify) }
  }
}
