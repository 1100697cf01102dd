import Foundation
import InstarTestSupport
import Testing

/// The real sourcekit-lsp, in a folder that `plugin new` made.
@Suite("Editors")
struct EditorTests {
  @Test(
    "sourcekit-lsp completes FetchDescriptor in the sources of a new plugin, and finds no error in them"
  )
  func completion() async throws {
    let folder = try TemporaryFolder()
    let made = try await CommandLineTool.run(["plugin", "new", "Trips"], in: folder.url)
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let file = folder.url.appending(path: "Trips/Sources/Trips/TripsPlan.swift")
    let text =
      try String(contentsOf: file, encoding: .utf8) + "\nlet descriptor = FetchDesc\n"
    try Data(text.utf8).write(to: file)

    let server = try LanguageServer(root: folder.url.appending(path: "Trips"))
    defer { server.end() }
    _ = try await server.request(
      "initialize",
      [
        "processId": NSNull(), "rootUri": folder.url.appending(path: "Trips").absoluteString,
        "capabilities": [String: Any](),
      ])
    try server.notify("initialized", [:])
    let document = ["uri": file.absoluteString]
    try server.notify(
      "textDocument/didOpen",
      [
        "textDocument": [
          "uri": file.absoluteString, "languageId": "swift", "version": 1, "text": text,
        ] as [String: Any]
      ])
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let line = try #require(lines.firstIndex { $0.hasPrefix("let descriptor") })
    // Until the server has read the package, it answers without its options.
    try await wait("FetchDescriptor among the completions") {
      let answer = try await server.request(
        "textDocument/completion",
        [
          "textDocument": document,
          "position": ["line": line, "character": "let descriptor = FetchDesc".count],
        ])
      let items = (answer as? [String: Any])?["items"] as? [[String: Any]] ?? []
      let labels = items.compactMap { $0["label"] as? String }
      if labels.contains(where: { $0.hasPrefix("FetchDescriptor") }) { return true }
      // Requests keep the server from reading the package.
      try await Task.sleep(for: .milliseconds(500))
      return false
    }
  }
}

/// A client of a language server: requests and notifications as JSON-RPC on its standard input and output
/// (https://microsoft.github.io/language-server-protocol/).
private final class LanguageServer {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var lastID = 0
  private var received = Data()

  private struct Ended: Error {}

  init(root: URL) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["sourcekit-lsp"]
    process.currentDirectoryURL = root
    process.environment = ProcessInfo.processInfo.environment
      .merging(["INSTAR_BUILD_DIR": CommandLineTool.productsFolder.path]) { $1 }
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func end() {
    process.terminate()
    process.waitUntilExit()
  }

  func notify(_ method: String, _ parameters: [String: Any]) throws {
    try send(["jsonrpc": "2.0", "method": method, "params": parameters])
  }

  /// Sends a request, and answers the server's own ones until its reply comes.
  func request(_ method: String, _ parameters: [String: Any]) async throws -> Any? {
    lastID += 1
    try send(["jsonrpc": "2.0", "id": lastID, "method": method, "params": parameters])
    while true {
      let message = try receive()
      if message["method"] != nil {
        if let id = message["id"] { try send(["jsonrpc": "2.0", "id": id, "result": NSNull()]) }
      } else if message["id"] as? Int == lastID {
        return message["result"]
      }
    }
  }

  private func send(_ message: [String: Any]) throws {
    let body = try JSONSerialization.data(withJSONObject: message)
    try input.fileHandleForWriting.write(
      contentsOf: Data("Content-Length: \(body.count)\r\n\r\n".utf8) + body)
  }

  private func receive() throws -> [String: Any] {
    let end = Data("\r\n\r\n".utf8)
    var header = received.range(of: end)
    while header == nil {
      try readMore()
      header = received.range(of: end)
    }
    guard let header else { throw Ended() }
    let fields = String(decoding: received[..<header.lowerBound], as: UTF8.self)
    let length =
      fields.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
      .flatMap { Int($0.dropFirst("Content-Length: ".count)) } ?? 0
    while received.distance(from: header.upperBound, to: received.endIndex) < length {
      try readMore()
    }
    let stop = received.index(header.upperBound, offsetBy: length)
    let body = Data(received[header.upperBound..<stop])
    received = Data(received[stop...])
    return try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:]
  }

  private func readMore() throws {
    let data = output.fileHandleForReading.availableData
    guard !data.isEmpty else { throw Ended() }
    received += data
  }
}
