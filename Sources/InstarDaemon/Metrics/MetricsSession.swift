import Foundation
import InstarLinux
import InstarSchema

/// The conversation with one client that reads the metrics: one request and its response, in HTTP/1.0 or 1.1.
///
/// Ends after the response, or when the request is malformed, too long, or not complete in time.
final class MetricsSession: Sendable {
  private let channel: LineChannel
  /// The metrics as text; `nil` if the daemon stops.
  private let read: @Sendable () -> String?
  /// For the whole request. A client that reads its response slowly is cut off by the next clients (`MetricsSocket`).
  private static let patience = Duration.seconds(5)
  private static let lineLimitBytes = 8 << 10
  private static let headerLimit = 100

  /// Takes ownership of a connection.
  init(connection: Int32, read: @escaping @Sendable () -> String?) {
    channel = LineChannel(descriptor: connection, lineLimitBytes: Self.lineLimitBytes)
    self.read = read
  }

  func close() { channel.close() }

  /// Answers the request.
  func serve() {
    do {
      let deadline = ContinuousClock.now + Self.patience
      guard let request = try line(deadline) else { return }
      var headers = 0
      while let header = try line(deadline), !header.isEmpty {
        headers += 1
        guard headers <= Self.headerLimit else {
          return try respond("431 Request Header Fields Too Large")
        }
      }
      try answer(request)
    } catch {
      // The client is gone, or broke the rules: there is nobody to tell.
    }
  }

  /// - Returns: `nil` where the client closed its end, or took too long.
  private func line(_ deadline: ContinuousClock.Instant) throws(InstarError) -> String? {
    guard case .line(let line) = try channel.receive(deadline: deadline) else { return nil }
    let text = String(decoding: line, as: UTF8.self)
    return text.hasSuffix("\r") ? String(text.dropLast()) : text
  }

  private func answer(_ request: String) throws(InstarError) {
    let words = request.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
      return try respond("400 Bad Request")
    }
    guard ["GET", "HEAD"].contains(words[0]) else {
      return try respond("405 Method Not Allowed", headers: ["Allow: GET, HEAD"])
    }
    // Also with scheme and host, as proxies are asked (RFC 9112, 3.2.2).
    guard let path = words[1].firstMatch(of: #/^(?:http://[^/]*)?([^?]*)/#)?.1, path == "/metrics"
    else {
      return try respond("404 Not Found", "The metrics are at /metrics.\n")
    }
    guard let text = read() else { return try respond("503 Service Unavailable") }
    try respond(
      "200 OK", text, type: "text/plain; version=0.0.4; charset=utf-8", isHead: words[0] == "HEAD")
  }

  private func respond(
    _ status: String, _ text: String = "", type: String = "text/plain; charset=utf-8",
    headers: [String] = [], isHead: Bool = false
  ) throws(InstarError) {
    let head = [
      "HTTP/1.1 \(status)", "Content-Type: \(type)", "Content-Length: \(text.utf8.count)",
      "Connection: close",
    ]
    let response = (head + headers).joined(separator: "\r\n") + "\r\n\r\n" + (isHead ? "" : text)
    try channel.send(Data(response.utf8), patience: Self.patience)
  }
}
