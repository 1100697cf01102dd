public import Foundation
public import InstarSchema

/// Keys of Ed25519 in the form that OpenSSL writes: PEM around the DER of RFC 8410, PKCS#8 for private keys
/// (`openssl genpkey -algorithm ed25519`) and SubjectPublicKeyInfo for public ones (`openssl pkey -pubout`).
///
/// For this one algorithm both are fixed bytes before the 32 bytes of the key, so nothing is parsed.
public enum Ed25519KeyFile {
  /// What a file can hold.
  public enum Kind: Sendable, CaseIterable {
    case privateKey
    case publicKey

    /// The text between "BEGIN" and "KEY".
    fileprivate var label: String {
      switch self {
      case .privateKey: "PRIVATE"
      case .publicKey: "PUBLIC"
      }
    }

    /// Up to the key, which ends the DER.
    fileprivate var prefix: [UInt8] {
      switch self {
      case .privateKey:
        [
          0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04,
          0x20,
        ]
      case .publicKey: [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
      }
    }
  }

  static let keyBytes = 32
  private static let fileLimitBytes = 16 << 10

  private static func missing(_ path: String, _ what: String) -> InstarError {
    return InstarError(
      .missingFile, what, cause: "the file does not exist",
      next: "check the path; run: ls -la \(CommandText.quoted(path.parentFolder)); "
        + "for a new pair of keys, run: instarctl plugin keygen NAME")
  }

  /// Reads the 32 bytes of a key.
  ///
  /// - Throws: `missingFile`; `invalidKey`, which never shows a part of the file.
  public static func read(_ path: String, _ kind: Kind) throws(InstarError) -> Data {
    let what = "cannot read the \(kind.label.lowercased()) key '\(path)'"
    let next = "make a pair of keys: instarctl plugin keygen NAME"
    guard access(path, R_OK) == 0 else {
      if errno == ENOENT { throw missing(path, what) }
      throw .systemFailure(
        what, errno, code: .invalidKey,
        next: "check the permissions; run: ls -l \(CommandText.quoted(path))")
    }
    let text: String
    do {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
      let data = try file.read(upToCount: fileLimitBytes) ?? Data()
      text = String(decoding: data, as: UTF8.self)
    } catch {
      throw InstarError(.invalidKey, what, cause: InstarError.reason(of: error), next: next)
    }
    guard let der = der(in: text, kind) else {
      let other = Kind.allCases.first { $0 != kind && der(in: text, $0) != nil }
      let cause =
        other.map { "the file contains a \($0.label.lowercased()) key" }
        ?? (text.contains("ENCRYPTED")
          ? "the key is encrypted with a password"
          : "not a PEM file with the \(kind.label.lowercased()) key")
      throw InstarError(
        .invalidKey, what, cause: cause, next: other.map { advice(on: path, with: $0) } ?? next)
    }
    guard der.count == kind.prefix.count + keyBytes, der.starts(with: kind.prefix) else {
      throw InstarError(.invalidKey, what, cause: "the key is not an Ed25519 key", next: next)
    }
    return Data(der.suffix(keyBytes))
  }

  /// What to do about a file with the other key of a pair. `instarctl plugin keygen` writes NAME.key and NAME.pem.
  private static func advice(on path: String, with kind: Kind) -> String {
    guard kind == .publicKey else {
      return
        "replace the file by the public key, NAME.pem; keep the private key where plugins are built"
    }
    let stem = path.hasSuffix(".pem") ? String(path.dropLast(4)) : "NAME"
    return "pass the private key of the pair: \(CommandText.quoted(stem + ".key"))"
  }

  /// The text of a key's file.
  public static func text(of key: Data, _ kind: Kind) -> String {
    let body = (Data(kind.prefix) + key).base64EncodedString()
    return "-----BEGIN \(kind.label) KEY-----\n\(body)\n-----END \(kind.label) KEY-----\n"
  }

  private static func der(in text: String, _ kind: Kind) -> Data? {
    guard let begin = text.range(of: "-----BEGIN \(kind.label) KEY-----"),
      let end = text.range(
        of: "-----END \(kind.label) KEY-----", range: begin.upperBound..<text.endIndex)
    else { return nil }
    let body = text[begin.upperBound..<end.lowerBound].filter { !$0.isWhitespace }
    return Data(base64Encoded: String(body))
  }
}
