import Foundation
import InstarTestSupport
import Testing

/// Every Swift block of the articles and of the README compiles, as a reader would paste it.
@Suite("Documentation")
struct DocumentationTests {
  private static let catalog = CommandLineTool.repository
    .appendingPathComponent("Sources/Instar/Instar.docc")

  static let pages: [String] = {
    let articles = try? FileManager.default.contentsOfDirectory(atPath: catalog.path)
    return (articles ?? []).filter { $0.hasSuffix(".md") }.sorted()
      .map { "Sources/Instar/Instar.docc/\($0)" } + ["README.md"]
  }()

  @Test("the Swift blocks of a page compile, as one file", arguments: pages)
  func blocks(_ page: String) async throws {
    let text = try String(
      contentsOf: CommandLineTool.repository.appendingPathComponent(page), encoding: .utf8)
    let blocks = Self.swiftBlocks(text)
    if blocks.isEmpty { return }
    let scratch = try TemporaryFolder()
    let file = scratch.path("Page.swift")
    try Data(blocks.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
    let answer = try await SwiftCompiler.run(
      ["-typecheck", "-parse-as-library", "-module-name", "Page"], files: [file], languageMode: 5)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
  }

  @Test("the articles that the landing page names are there")
  func links() throws {
    let landing = try String(
      contentsOf: Self.catalog.appendingPathComponent("Instar.md"), encoding: .utf8)
    let names = landing.matches(of: /<doc:([A-Za-z]+)>/).map { String($0.1) }
    #expect(names.count >= 5)
    for name in names {
      #expect(Self.pages.contains("Sources/Instar/Instar.docc/\(name).md"), "\(name)")
    }
  }

  private static func swiftBlocks(_ text: String) -> [String] {
    text.matches(of: /(?m)^```swift\n((?s:.*?))^```$/).map { String($0.1) }
  }
}
