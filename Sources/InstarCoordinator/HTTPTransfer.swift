internal import CCurl
import Foundation

/// One request as libcurl makes it. Only the client's thread uses it, and calls `end` once, as the last.
final class HTTPTransfer {
  let request: HTTPRequest
  private let easy: UnsafeMutableRawPointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  /// Where libcurl writes what went wrong.
  private let text = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

  /// Begins the transfer.
  init(
    _ request: HTTPRequest, _ tls: TLSFiles, connectLimit: Duration,
    in multi: UnsafeMutableRawPointer
  ) throws(HTTPFailure) {
    guard let easy = curl_easy_init() else { throw .other("no memory is left") }
    self.easy = easy
    self.request = request
    text.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    do throws(HTTPFailure) {
      try configure(tls, connectLimit)
      let code = curl_multi_add_handle(multi, easy)
      guard code == CURLM_OK else { throw .other(String(cString: curl_multi_strerror(code))) }
    } catch {
      release()
      throw error
    }
  }

  /// The transfer of a handle.
  static func of(_ easy: UnsafeMutableRawPointer) -> HTTPTransfer? {
    instar_curl_object(easy).map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
  }

  private func configure(_ tls: TLSFiles, _ connectLimit: Duration) throws(HTTPFailure) {
    let object = Unmanaged.passUnretained(self).toOpaque()
    try set(CURLOPT_PRIVATE, object: object)
    try set(CURLOPT_ERRORBUFFER, object: text)
    try set(CURLOPT_URL, request.url)
    try set(CURLOPT_PROTOCOLS_STR, "http,https")
    try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    try set(CURLOPT_FOLLOWLOCATION, 0)
    // Not even one that a variable of the environment names.
    try set(CURLOPT_PROXY, "")
    try check(instar_curl_close_on_exec(easy))

    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_TIMEOUT_MS, Self.milliseconds(request.limit))
    try set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(connectLimit))
    // The thread does not wait for a name server that does not answer: libcurl leaves its query behind.
    try set(CURLOPT_QUICK_EXIT, 1)
    // Names are resolved only for new connections. These must notice when a member has another address.
    try set(CURLOPT_DNS_CACHE_TIMEOUT, 0)

    try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    try set(CURLOPT_SSL_VERIFYPEER, 1)
    try set(CURLOPT_SSL_VERIFYHOST, 2)
    if let authority = tls.authority {
      try set(CURLOPT_CAINFO, authority)
      // Else those of the system would count too.
      try set(CURLOPT_CAPATH, nil)
    }
    if let certificate = tls.certificate, let key = tls.key {
      try set(CURLOPT_SSLCERT, certificate)
      try set(CURLOPT_SSLKEY, key)
      // Without one, OpenSSL asks for it at the terminal.
      try set(CURLOPT_KEYPASSWD, "")
    }
    // Each new connection reads the files again, and does not resume a session that older ones began.
    try set(CURLOPT_CA_CACHE_TIMEOUT, 0)
    try set(CURLOPT_SSL_SESSIONID_CACHE, 0)

    // The second header would have the server confirm a long body before it is sent.
    for header in ["Content-Type: application/json", "Expect:"] {
      guard let longer = curl_slist_append(headers, header) else {
        throw .other("no memory is left")
      }
      headers = longer
    }
    try set(CURLOPT_HTTPHEADER, object: headers)
    try check(
      request.body.withUnsafeBytes { instar_curl_set_body(easy, $0.baseAddress, Int64($0.count)) })
    try check(
      instar_curl_set_receive(
        easy,
        { bytes, size, count, context in
          guard let context else { return 0 }
          return Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
            .receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }, object))
  }

  /// At least 1, because libcurl reads 0 as none.
  private static func milliseconds(_ duration: Duration) -> Int {
    max(1, Int((duration / .milliseconds(1)).rounded(.up)))
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPFailure) {
    try check(instar_curl_set_number(easy, option, value))
  }

  private func set(_ option: CURLoption, _ value: String?) throws(HTTPFailure) {
    try check(instar_curl_set_text(easy, option, value))
  }

  private func set(_ option: CURLoption, object: UnsafeMutableRawPointer?) throws(HTTPFailure) {
    try check(instar_curl_set_object(easy, option, object))
  }

  private func check(_ code: CURLcode) throws(HTTPFailure) {
    guard code == CURLE_OK else { throw HTTPFailure(code, of: easy, text: String(cString: text)) }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    switch request.receive(bytes, status: status) {
    case .taken: bytes.count
    case .paused: Int(instar_curl_pause())
    // Any other number than that of the bytes ends the transfer.
    case .refused: -1
    }
  }

  private var status: Int { instar_curl_number(easy, CURLINFO_RESPONSE_CODE) }

  /// Reads on after a pause.
  func resume() throws(HTTPFailure) { try check(curl_easy_pause(easy, CURLPAUSE_CONT)) }

  /// Tells the request how its transfer ended.
  func finish(_ code: CURLcode) {
    let failure = HTTPFailure(code, of: easy, text: String(cString: text))
    request.finish(code == CURLE_OK ? .success(()) : .failure(failure), status: status)
  }

  /// Removes the transfer from libcurl. A connection whose answer was not read to its end is closed.
  func end(in multi: UnsafeMutableRawPointer) {
    // It fails only for handles that are not libcurl's.
    curl_multi_remove_handle(multi, easy)
    release()
  }

  private func release() {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headers)
    text.deallocate()
  }
}
