import Foundation

/// The programs of `Tests/Fixtures/Apps`, compiled once each against the SDK's library, as an app is.
enum FixtureApps {
  static let crates = Task { try await build("Crates") }

  private static func build(_ name: String) async throws -> String {
    let folder = CommandLineTool.productsFolder.appendingPathComponent("EndToEndTests.apps")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let sources = CommandLineTool.repository.appendingPathComponent("Tests/Fixtures/Apps/\(name)")
    let files = try FileManager.default.contentsOfDirectory(atPath: sources.path).sorted()
      .filter { $0.hasSuffix(".swift") }.map { sources.appendingPathComponent($0).path }
    let program = folder.appendingPathComponent(name).path
    let answer = try await SwiftCompiler.link(files, output: program, languageMode: 6)
    guard answer.status == 0 else { throw BuildFailure(messages: answer.messages) }
    return program
  }

  private struct BuildFailure: Error {
    let messages: String
  }
}
