import Foundation
import InstarTestSupport
import Testing

@Suite("Manual pages")
struct ManualPagesTests {
  @Test("every page fits in a terminal of 80 columns, and man has nothing to warn of")
  func width() async throws {
    let folder = try TemporaryFolder()
    let made = try await Program.run(
      CommandLineTool.repository.appendingPathComponent("packaging/manual-pages").path,
      [CommandLineTool.productsFolder.path, folder.path])
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let pages = folder.names()
    #expect(pages == ["instar-plugin.7", "instarctl.1", "instard.8", "instard.yml.5"])
    for page in pages {
      let shown = try await Program.run(
        "env",
        ["MANWIDTH=80", "MANPAGER=cat", "LC_ALL=C.UTF-8", "man", "--warnings", "-l"]
          + [folder.path(page)])
      #expect(shown.status == 0 && !shown.messages.contains("warning:"), "\(shown.messages)")
      #expect(shown.messages.split(separator: "\n").filter { $0.count > 80 } == [], "\(page)")
    }
  }

  @Test(
    "both programs generate completions for three shells",
    arguments: ["instarctl", "instard"], ["bash", "zsh", "fish"])
  func completions(program: String, shell: String) async throws {
    let answer = try await Program.run(
      CommandLineTool.productsFolder.appendingPathComponent(program).path,
      ["--generate-completion-script", shell])
    #expect(answer.status == 0)
    #expect(answer.messages.contains("help"))
    #expect(answer.messages.contains(shell == "zsh" ? "#compdef \(program)" : program))
  }
}
