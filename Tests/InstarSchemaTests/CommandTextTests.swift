import Foundation
import InstarSchema
import Testing

@Suite("Commands in messages")
struct CommandTextTests {
  @Test(
    "a quoted path is one word of a shell and one line, whatever characters it has",
    arguments: [
      "/srv/a b.store", "it's", "'\u{301}; echo injected; '\u{301}",
      "new\n  line\r\nand\u{2028}more", "\u{1B}[2J\t", #"back\slash's"#,
      #"back\slash"# + "\u{7F}'$(id)`id`\u{85}!", "üñ👩‍👩‍👧\u{202E}",
    ])
  func quoted(path: String) throws {
    let quoted = CommandText.quoted(path)
    let lines = quoted.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    #expect(lines.count == 1)
    let shell = Process()
    shell.executableURL = URL(filePath: "/bin/bash")
    shell.arguments = ["-c", "printf '%s|' \(quoted)"]
    let output = Pipe()
    shell.standardOutput = output
    try shell.run()
    let words = try output.fileHandleForReading.readToEnd()
    shell.waitUntilExit()
    #expect(words == Data("\(path)|".utf8))
  }

  @Test("a retry follows the advice, or replaces the command that migrates the store")
  func retrying() {
    func retrying(_ advice: String?) -> String { CommandText.retrying("/a b", after: advice) }
    #expect(retrying(nil) == "run: instarctl retry '/a b'")
    #expect(
      retrying("stop process 13 (app)") == "stop process 13 (app), then run: instarctl retry '/a b'"
    )
    let migration = CommandText.migrate("/a b", plugins: ["/p/N.so"])
    for command in ["run: \(migration)", CommandText.repetition] {
      #expect(
        retrying("when the store is less busy, \(command)")
          == "when the store is less busy, run: instarctl retry '/a b'")
    }
  }

  @Test("commands that ask an instard get the option that reaches the same one, and no others do")
  func reaching() {
    func reaching(_ text: String) -> String {
      CommandText.completing(text, .instard(option: " --socket '/a b'"))
    }
    for command in ["status", "stores", "retry", "pause", "resume", "approve", "rescan", "report"] {
      #expect(
        reaching("run: instarctl \(command) --plan P; or ask")
          == "run: instarctl \(command) --socket '/a b' --plan P; or ask")
    }
    #expect(
      reaching("run: instarctl stores, and: instarctl retry")
        == "run: instarctl stores --socket '/a b', and: instarctl retry --socket '/a b'")
    #expect(reaching("instarctl release 'x'") == "instarctl release --socket '/a b' 'x'")
    for text in [
      "instarctl release 'x' --state-dir '/s'", "instarctl migrate 'x'", "instarctl restore 'x'",
      "instarctl statuses", "the status",
    ] {
      #expect(reaching(text) == text)
    }
    let status = "instarctl status"
    #expect(CommandText.completing(status, .instard(option: "")) == status)
  }
}
