import Foundation
import InstarSchema

/// Makes requests over HTTP/1.1, with and without TLS, by Debian's libcurl.
///
/// All requests of a client are made on one thread and share its connections. The client follows no redirects and uses
/// no proxy. It checks that a server's certificate is valid and for the server's name. Each new connection reads the
/// files of certificates again, so a renewed certificate is used without a restart.
final class HTTPClient: Sendable {
  let thread: HTTPThread

  /// - Throws: `internalError` if there is no memory or no thread left.
  init(_ tls: TLSFiles, connectLimit: Duration) throws(InstarError) {
    thread = try HTTPThread(tls, connectLimit: connectLimit)
  }

  deinit { thread.beginClosing() }

  /// Ends all requests, and returns when all connections are closed and the thread has ended.
  func close() async { await thread.close() }

  /// Posts a document in JSON.
  ///
  /// - Parameters:
  ///   - limit: How long the whole answer may take.
  ///   - read: Reads the answer. Afterwards the request ends, also if there is more to read. The request also ends when
  ///     the task is cancelled.
  func post<Value>(
    _ url: String, _ body: Data, limit: Duration, read: (HTTPRequest) async throws -> Value
  ) async throws -> Value {
    let request = HTTPRequest(url, body: body, limit: limit, thread: thread)
    thread.add(request)
    defer { request.cancel() }
    return try await read(request)
  }
}
