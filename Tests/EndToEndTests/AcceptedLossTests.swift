import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("A plan that loses values")
struct AcceptedLossTests {
  let folder: TemporaryFolder
  private let store: BoxStore

  init() throws {
    folder = try TemporaryFolder()
    store = try BoxStore("lid", boxes: 7, in: folder, journalMode: "delete")
  }

  /// A plugin whose custom stage makes numbers of the names of boxes, and writes none.
  private func build(accepts losses: String = "") async throws -> String {
    let source = try folder.write(
      """
      import Instar

      #InstarPlugin(NumbersPlan.self)

      enum NamesV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Box.self] }

        @Model final class Box {
          var name: String
          var size: Int
          init(name: String, size: Int) { (self.name, self.size) = (name, size) }
        }
      }

      enum NumbersV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Box.self] }

        @Model final class Box {
          var name: Int?
          var size: Int
          init(size: Int) { self.size = size }
        }
      }

      enum NumbersPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [NamesV1.self, NumbersV2.self] }
        static var stages: [MigrationStage] {
          [
            .custom(
              fromVersion: NamesV1.self, toVersion: NumbersV2.self, willMigrate: nil,
              didMigrate: nil)
          ]
        }
        \(losses)
      }
      """, to: "Numbers.swift")
    let plugin = folder.path("Numbers.so")
    let answer = try await CommandLineTool.run(
      "plugin", "build", "--debug", source, "-o", plugin)
    try #require(answer.status == 0, Comment(rawValue: answer.messages))
    return plugin
  }

  private func migrate(_ plugin: String, _ options: String...) async throws -> RunReport {
    let answer = try await CommandLineTool.run(
      ["migrate", store.path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json"]
        + options)
    return try #require(
      try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
  }

  @Test(
    "a run that would lose values is refused with their count, by instarctl and by instard, until the operator accepts it"
  )
  func refused() async throws {
    let plugin = try await build()
    let before = try Data(contentsOf: URL(filePath: store.path))
    let refused = try await migrate(plugin)
    #expect(refused.result == .refused && refused.error?.code == .unacceptedLoss)
    #expect(refused.error?.state == "unchanged")
    let lost = "drops 7 non-null values of Box.name"
    #expect(refused.error?.cause.contains(lost) == true, "\(refused.error?.cause ?? "")")
    #expect(try Data(contentsOf: URL(filePath: store.path)) == before)

    try await expectRefusalByDaemon(of: plugin, lost)
    #expect(try Data(contentsOf: URL(filePath: store.path)) == before)

    let accepted = try await migrate(plugin, "--accept-loss")
    #expect(accepted.result == .migrated && accepted.notes.contains(lost), "\(accepted.notes)")
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try store.sizes() == Array(0..<7))
  }

  @Test("a run that would lose values migrates the store where the plan accepts the loss")
  func acceptedByPlan() async throws {
    let plugin = try await build(
      accepts: "static var acceptedLosses: [String] { [\"Box.name\"] }")
    #expect(try await migrate(plugin).result == .migrated)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  private func expectRefusalByDaemon(of plugin: String, _ cause: String) async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [plugin])
    try fixture.watchWholeFolder()
    let daemon = try fixture.start()
    defer { daemon.terminate(grace: .seconds(10)) }
    try await fixture.wait(for: "INSTAR_EVENT=run-refused", in: daemon)
    let line = daemon.capturedOutput.split(separator: "\n").first {
      $0.contains("INSTAR_EVENT=run-refused")
    }
    let refusal = try #require(line, Comment(rawValue: daemon.capturedOutput))
    #expect(refusal.contains("INSTAR_CODE=I214") && refusal.contains(cause), "\(refusal)")
    #expect(refusal.contains("Numbers.so' --accept-loss '"))
    #expect(refusal.contains("retries when the store or a plugin changes"))
  }
}
