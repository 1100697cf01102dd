import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("A plugin that misbehaves")
struct MisbehavingPluginTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func migrate(_ store: BoxStore, timeLimit: String = "5m") async throws -> RunReport {
    let answer = try await CommandLineTool.run([
      "migrate", store.path, "--plugin", try await FixturePlugins.boxes.value,
      "--state-dir", folder.path("state"), "--stage-time-limit", timeLimit,
      "--worker-memory", "1GiB", "--json",
    ])
    let report = try #require(
      try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
    #expect(answer.status == (report.result == .migrated ? 0 : 1))
    return report
  }

  @Test(
    "a misbehaving plugin ends its own run with a report, and the store is byte for byte as it was",
    arguments: [
      ("throw", InstarError.Code.stageFailed, "willMigrate threw: the box is locked"),
      // A getter that has nothing to give: the error comes before the end of the process.
      ("unreadable", .missingRequiredValues, "'seal' has no value"),
      ("trap", .workerDied, "was killed by SIG"),
      ("abort", .workerDied, "was killed by SIGABRT"),
      ("exit", .workerExited, "exited with status 0"),
      ("memory", .workerLimit, "used more than 1024 MiB of memory"),
      ("swarm", .workerLimit, "started more threads than the limit allows"),
      ("bigfile", .workerLimit, "wrote a file of more than 4096 MiB"),
      (
        "lose", .invariantViolated,
        "invariant 'every box is kept' of plan BoxPlan is violated: Box had 50 rows and has 47: missing are rows"
      ),
      ("garbage", .protocolViolation, "this is no message"),  // tidy:ignore words
      // Confinement holds: the closure says what it was able to do.
      ("escape", .stageFailed, "nothing escaped"),
    ])
  func survived(name: String, code: InstarError.Code, cause: String) async throws {
    let store = try BoxStore(name, in: folder)
    let before = try Data(contentsOf: URL(filePath: store.path))
    let report = try await migrate(store)
    #expect(report.result == .failed)
    #expect(report.error?.code == code)
    #expect(report.error?.cause.contains(cause) == true, "\(report.error?.cause ?? "")")
    #expect(report.error?.state == "unchanged")
    #expect(try Data(contentsOf: URL(filePath: store.path)) == before)
    #expect(Set(folder.names()) == ["\(name).store", "state"])
  }

  @Test(
    "a misbehaving plugin works on one store only, also where one keeper migrates many, and a crash costs that store's run"
  )
  func manyStores() async throws {
    let store = try BoxStore("alone", in: folder)
    let trap = try BoxStore("trap", in: folder)
    let copies = try (1...12).map { number in
      let copy = folder.path("alone-\(number).store")
      try FileManager.default.copyItem(atPath: store.path, toPath: copy)
      return copy
    }
    let answer = try await CommandLineTool.run(
      ["migrate", "--plugin", try await FixturePlugins.boxes.value, "--json"]
        + ["--state-dir", folder.path("state"), store.path] + copies.prefix(6) + [trap.path]
        + copies.dropFirst(6))
    let reports = try answer.objects(RunReport.self)
    #expect(reports.count == 14, Comment(rawValue: answer.messages))
    for report in reports {
      guard report.store != trap.path else {
        #expect(report.error?.code == .workerDied)
        continue
      }
      #expect(report.result == .migrated, "\(report.store): \(report.error?.cause ?? "")")
      #expect(try BoxStore(path: report.store).labels() == 50)
    }
  }

  @Test("a plugin that reads a property without a value is told what to do")
  func readsNothing() async throws {
    let report = try await migrate(try BoxStore("unreadable", in: folder))
    #expect(
      report.error?.next
        == "set the property before reading it, give it an initial value, or make it optional")
  }

  @Test("a plugin that writes beside the store, which its context names, is told that it cannot")
  func writesBesideStore() async throws {
    let store = try BoxStore("beside", in: folder)
    let report = try await migrate(store)
    #expect(report.error?.code == .stageFailed)
    #expect(
      report.error?.cause == "willMigrate has no permission to write '\(store.path).done'",
      "\(report.error?.cause ?? "")")
    #expect(report.error?.next?.contains("through the closure's context") == true)
    #expect(Set(folder.names()) == ["beside.store", "state"])
  }

  @Test("a plugin that hangs is ended at its time limit")
  func hangs() async throws {
    let store = try BoxStore("hang", in: folder)
    let report = try await migrate(store, timeLimit: "1s")
    #expect(report.error?.code == .timeLimit)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(folder.names() == ["hang.store", "state"])
  }

  @Test("a plugin that prints megabytes does its work all the same")
  func prints() async throws {
    let store = try BoxStore("flood", in: folder)
    #expect(try await migrate(store).result == .migrated)
  }

  @Test(
    "a plugin that leaves threads behind is killed before the keeper reads the clone, and its work counts"
  )
  func leavesThreads() async throws {
    let store = try BoxStore("threads", in: folder)
    let report = try await migrate(store)
    #expect(report.result == .migrated)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try store.labels() == 50)
  }
}
