import Foundation
import InstarLinux
import InstarSchema

/// The files with the certificates and the key of a connection by TLS, in PEM form.
struct TLSFiles: Sendable {
  /// The certificates of the authorities that servers are checked with; `nil` for those of the system.
  var authority: String?
  /// The certificate by which the server knows this host, and the key of it.
  var certificate: String?
  var key: String?

  /// Reads all files, and checks that each contains what it must. Whether a key belongs to its certificate, and whether
  /// both are accepted, is known only when a connection is made.
  ///
  /// - Throws: `invalidConfiguration`
  func check() throws(InstarError) {
    if let authority {
      try Self.check(authority, "the certificate of the authority", Self.isCertificate)
    }
    if let certificate, let key {
      try Self.check(certificate, "the certificate of this host", Self.isCertificate)
      try Self.check(key, "the key of this host", Self.isKey)
    }
  }

  private static func isCertificate(_ label: Substring) -> Bool {
    ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"].contains(label)
  }

  private static func isKey(_ label: Substring) -> Bool { label.hasSuffix("PRIVATE KEY") }

  private static func check(
    _ path: String, _ what: String, _ isWanted: (Substring) -> Bool
  ) throws(InstarError) {
    let cause: String
    do {
      let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
      let blocks = blocks(text).filter { isWanted($0.label) }
      if blocks.contains(where: { $0.label.hasPrefix("ENCRYPTED") || $0.body.contains("ENCRYPTED") }
      ) {
        cause = "the key is encrypted, and instar-coordinator cannot ask for its passphrase"
      } else if blocks.isEmpty || !blocks.allSatisfy({ isDER($0.body) }) {
        cause = "the file is not in PEM form"
      } else {
        return
      }
    } catch {
      cause = InstarError.reason(of: error)
    }
    throw InstarError(
      .invalidConfiguration, "cannot read \(what), '\(path)'", cause: cause,
      next: "correct 'coordinator' in instard.yml, or let the user of this process read the file")
  }

  /// The blocks of a file in PEM form (RFC 7468), with what is between their first and last lines.
  private static func blocks(_ text: String) -> [(label: Substring, body: String)] {
    var found: [(label: Substring, body: String)] = []
    var open: (label: Substring, lines: [Substring])?
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("-----BEGIN "), line.hasSuffix("-----") {
        open = (line.dropFirst(11).dropLast(5), [])
      } else if let block = open, line == "-----END \(block.label)-----" {
        found.append((block.label, block.lines.joined(separator: "\n")))
        open = nil
      } else {
        open?.lines.append(line)
      }
    }
    return found
  }

  /// Whether a text is base64 of one whole ASN.1 sequence.
  private static func isDER(_ text: String) -> Bool {
    let data =
      Data(base64Encoded: text, options: .ignoreUnknownCharacters).map { [UInt8]($0) } ?? []
    guard data.count > 2, data[0] == 0x30 else { return false }
    guard data[1] >= 0x80 else { return data.count == 2 + Int(data[1]) }
    let lengthBytes = Int(data[1] & 0x7F)
    guard (1...4).contains(lengthBytes), data.count > 2 + lengthBytes else { return false }
    let length = data[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | Int($1) }
    return data.count == 2 + lengthBytes + length
  }
}
