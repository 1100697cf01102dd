import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Builds that follow each other while an author writes a plan.
@Suite("instarctl plugin build, again and again")
struct PluginWatchTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let versions = """
    import Instar

    enum ShelfV1: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 0, 0)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        init(title: String) { self.title = title }
      }
    }

    enum ShelfV2: VersionedSchema {
      static let versionIdentifier = Schema.Version(2, 0, 0)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        var shelf: String = ""
        init(title: String) { self.title = title }
      }
    }
    """

  /// A plan with an invariant of this name, so that its report shows which source it was built from.
  private static func plan(_ name: String) -> String {
    """
    import Instar

    enum ShelfPlan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [ShelfV1.self, ShelfV2.self] }
      static var invariants: [Invariant] { [.rowsKept(of: ShelfV2.Book.self, named: "\(name)")] }
      static var stages: [MigrationStage] {
        [
          .custom(
            fromVersion: ShelfV1.self, toVersion: ShelfV2.self, willMigrate: nil,
            didMigrate: { context in
              for book in try context.fetch(FetchDescriptor<ShelfV2.Book>()) {
                book.shelf = String(book.title.prefix(1))
              }
            })
        ]
      }
    }

    #InstarPlugin(ShelfPlan.self)
    """
  }

  private func write(_ text: String, to name: String) throws -> String {
    let path = folder.path(name)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  private struct Inspection: Decodable {
    var plans: [PlanManifest]?
  }

  private func invariants(of plugin: String) async throws -> [String] {
    let answer = try await CommandLineTool.run("plugin", "inspect", plugin, "--json")
    let inspection = try #require(try answer.objects(Inspection.self).first)
    return (inspection.plans ?? []).flatMap(\.invariants).map(\.name)
  }

  @Test("a debug build compiles the file that changed, not the models beside it")
  func incremental() async throws {
    let versions = try write(Self.versions, to: "Versions.swift")
    let plan = try write(Self.plan("first"), to: "Plan.swift")
    let plugin = folder.path("Shelf.so")
    let build = ["plugin", "build", "--debug", versions, plan, "-o", plugin]
    let first = try await CommandLineTool.run(build)
    try #require(first.status == 0, Comment(rawValue: first.messages))
    let objects = folder.path(".Shelf.so.objects/objects-of-expanded")
    // The compiler writes no object that stays the same, so its time does not show that it was compiled again. One
    // with a byte more, which the linker ignores, would be replaced.
    let marked = try [versions, plan].map { source in
      let object = URL(fileURLWithPath: "\(objects)\(source).o")
      let content = try Data(contentsOf: object) + [0]
      try content.write(to: object)
      return content
    }

    _ = try write(Self.plan("second"), to: "Plan.swift")
    let second = try await CommandLineTool.run(build)
    try #require(second.status == 0, Comment(rawValue: second.messages))
    let after = try [versions, plan].map {
      try Data(contentsOf: URL(fileURLWithPath: "\(objects)\($0).o"))
    }
    #expect(after[0] == marked[0])
    #expect(after[1] != marked[1])
    #expect(try await invariants(of: plugin) == ["second"])

    // A property has a key path only if any source may name it in one.
    _ = try write(
      Self.plan("third").replacing(
        "FetchDescriptor<ShelfV2.Book>()",
        with: "FetchDescriptor<ShelfV2.Book>(sortBy: [SortDescriptor(\\.title)])"),
      to: "Plan.swift")
    let sorted = try await CommandLineTool.run(build)
    try #require(sorted.status == 0, Comment(rawValue: sorted.messages))
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(objects)\(versions).o")) != marked[0])
    #expect(try await invariants(of: plugin) == ["third"])

    // A change of a model reaches the plan that uses it.
    _ = try write(
      Self.versions.replacing("var shelf: String = \"\"", with: "var shelf: Int = 0"),
      to: "Versions.swift")
    let fourth = try await CommandLineTool.run(build)
    #expect(fourth.status == 1)
    #expect(fourth.messages.contains("Plan.swift:"), Comment(rawValue: fourth.messages))
  }

  @Test(
    "plugin build --watch builds, checks and rehearses at each change of a source, until Ctrl-C")
  func watch() async throws {
    let sources = folder.path("Sources")
    try FileManager.default.createDirectory(atPath: sources, withIntermediateDirectories: true)
    _ = try write(Self.versions, to: "Sources/Versions.swift")
    let plan = try write(Self.plan("first"), to: "Sources/Plan.swift")
    let store = folder.path("a.store")
    try await makeStore(at: store)
    let content = try Data(contentsOf: URL(fileURLWithPath: store))
    let plugin = folder.path("Shelf.so")
    let command = try Command(
      [
        "plugin", "build", sources, "-o", plugin, "--watch", "--rehearse", store, "--json",
        "--state-dir", folder.path("state"),
      ], in: folder)
    try await command.waitForBuild()
    for source in [Self.plan("second"), "not Swift", Self.plan("third")] {
      // At once: on a busy machine a file that is emptied and then written is two changes.
      try Data(source.utf8).write(to: URL(fileURLWithPath: plan), options: .atomic)
      try await command.waitForBuild()
    }
    let answer = try await command.interrupt()
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    let reports = answer.output.split(separator: "\n").compactMap {
      try? JSONDecoder().decode(RunReport.self, from: Data($0.utf8))
    }
    #expect(reports.compactMap(\.invariants) == [["first"], ["second"], ["third"]])
    #expect(reports.allSatisfy { $0.rehearsal != nil && $0.error == nil })
    let errors = answer.output.split(separator: "\n").compactMap {
      try? JSONDecoder().decode([String: InstarError].self, from: Data($0.utf8))["error"]
    }
    #expect(errors.map(\.code) == [.buildFailed])
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == content)
  }

  @Test("plugin build --rehearse without --watch is a wrong usage")
  func usage() async throws {
    let answer = try await CommandLineTool.run(
      "plugin", "build", folder.path, "-o", folder.path("a.so"), "--rehearse", "a.store")
    #expect(answer.status == 2)
    #expect(answer.messages.contains("--rehearse needs --watch"))
  }

  /// A command that runs until it is interrupted.
  private final class Command {
    private let process = Process()
    private let output: URL
    private let messages: URL
    private var builds = 0
    private let ended = AsyncStream<Void>.makeStream()

    init(_ arguments: [String], in folder: TemporaryFolder) throws {
      output = folder.url.appendingPathComponent("output")
      messages = folder.url.appendingPathComponent("messages")
      process.executableURL = CommandLineTool.productsFolder.appendingPathComponent("instarctl")
      process.arguments = arguments
      process.standardInput = FileHandle.nullDevice
      for file in [output, messages] { try Data().write(to: file) }
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = try FileHandle(forWritingTo: messages)
      process.terminationHandler = { [ended] _ in ended.continuation.finish() }
      try process.run()
    }

    /// Waits until one more build has ended, or failed.
    func waitForBuild() async throws {
      builds += 1
      // A build takes a minute on a busy machine.
      let deadline = ContinuousClock.now + .seconds(600)
      while process.isRunning, ContinuousClock.now < deadline {
        let text = try String(contentsOf: messages, encoding: .utf8)
        if text.ranges(of: "waiting for changes").count >= builds { return }
        try await Task.sleep(for: .milliseconds(50))
      }
      Issue.record("no build has ended: \(try String(contentsOf: messages, encoding: .utf8))")
    }

    func interrupt() async throws -> CommandLineTool.Answer {
      kill(process.processIdentifier, SIGINT)
      for await _ in ended.stream {}
      return CommandLineTool.Answer(
        status: process.terminationStatus,
        output: try String(contentsOf: output, encoding: .utf8),
        messages: try String(contentsOf: messages, encoding: .utf8))
    }
  }

  private func makeStore(at path: String) async throws {
    let versions = try write(Self.versions, to: "App.swift")
    let program = folder.path("app")
    try await SwiftCompiler.buildApp(
      program, models: versions, version: "ShelfV1",
      body: "context.insert(ShelfV1.Book(title: \"Emma\"))")
    let made = try await Program.run(program, [path])
    try #require(made.status == 0, Comment(rawValue: made.messages))
  }
}
