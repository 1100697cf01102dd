internal import CCurl
import Foundation

/// Why a request got no answer, or not all of it.
enum HTTPFailure: Error, Equatable {
  /// The task that reads the answer was cancelled, or has finished reading.
  case canceled
  /// The client was closed.
  case closed
  /// The time limit of the request passed, or the one for making its connection.
  case timedOut(isConnected: Bool)
  case hostWithoutAddress
  /// A system call failed with this `errno`.
  case system(Int32)
  case closedConnection(hasAnswer: Bool)
  /// The server's certificate is valid, but not for its name or address.
  case certificateOfOtherHost
  /// The server answered without TLS, or ended the connection before TLS was established.
  case handshakeEnded
  /// TLS failed for this reason.
  case tls(String)
  /// Anything else, in the words of libcurl.
  case other(String)

  /// - Parameters:
  ///   - code: An error of libcurl.
  ///   - easy: The handle of the transfer that ended with it.
  ///   - text: What libcurl says about it; it may be empty.
  init(_ code: CURLcode, of easy: UnsafeMutableRawPointer, text: String) {
    let text = text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
    let number = Int32(instar_curl_number(easy, CURLINFO_OS_ERRNO))
    switch code {
    case CURLE_OPERATION_TIMEDOUT:
      self = .timedOut(isConnected: instar_curl_time(easy, CURLINFO_PRETRANSFER_TIME_T) > 0)
    case CURLE_COULDNT_RESOLVE_HOST: self = .hostWithoutAddress
    case CURLE_PEER_FAILED_VERIFICATION where Self.isOfOtherHost(text):
      self = .certificateOfOtherHost
    case CURLE_SSL_CONNECT_ERROR where Self.isWithoutTLS(text): self = .handshakeEnded
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CACERT_BADFILE:
      self = .tls(Self.tlsReason(text))
    // With TLS 1.3 a server refuses a certificate only after the client has taken the connection for established.
    case _ where text.contains(Self.reasonMark): self = .tls(Self.tlsReason(text))
    case CURLE_GOT_NOTHING: self = .closedConnection(hasAnswer: false)
    case CURLE_PARTIAL_FILE: self = .closedConnection(hasAnswer: true)
    case _ where number != 0: self = .system(number)
    default: self = .other(text)
    }
  }

  /// What precedes the reason in an error of OpenSSL, such as
  /// "error:0A00010B:SSL routines::wrong version number".
  private static let reasonMark = "SSL routines::"

  private static func tlsReason(_ text: String) -> String {
    for mark in [reasonMark, "SSL certificate problem: "] {
      guard let range = text.range(of: mark) else { continue }
      return String(text[range.upperBound...].prefix { $0 != "," })
    }
    return text
  }

  private static func isOfOtherHost(_ text: String) -> Bool {
    text.contains("target host name") || text.contains("target hostname")
      || text.contains("target ip address") || text.contains("target ipv4 address")
      || text.contains("target ipv6 address")
  }

  /// A server without TLS answers in plain text, or ends the connection as etcd does.
  private static func isWithoutTLS(_ text: String) -> Bool {
    [
      "wrong version number", "packet length too long", "unexpected eof", "SSL_ERROR_SYSCALL",
      "Connection reset by peer",
    ].contains { text.contains($0) }
  }
}
