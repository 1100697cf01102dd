public import Foundation
public import InstarSchema

/// The policy that a plugin is loaded only if a trusted key signed it.
///
/// The signature of `Notes.so` is `Notes.so.sig`: Ed25519 (RFC 8032) of all bytes of the file, 64 bytes. OpenSSL makes
/// the same: `openssl pkeyutl -sign -rawin -inkey KEY -in Notes.so -out Notes.so.sig`.
public struct SignaturePolicy: Sendable {
  /// Whether a signature is that of these bytes by a public key. A malformed one is not.
  public typealias Check = @Sendable (_ signature: Data, _ contents: Data, _ key: Data) -> Bool

  public static let signatureBytes = 64
  /// The longest plugin that is read into memory.
  public static let pluginLimitBytes = 512 << 20

  private let keys: [TrustedKeys.Key]
  private let isValid: Check

  /// - Parameter isValid: Passed in, because most programs need no cryptography.
  public init(keys: [TrustedKeys.Key], isValid: @escaping Check) {
    self.keys = keys
    self.isValid = isValid
  }

  /// The path of a plugin's signature.
  public static func signature(of plugin: String) -> String { plugin + ".sig" }

  /// Reads a plugin that one of the keys signed.
  ///
  /// Load the returned bytes, and not the file: it may have been replaced since.
  ///
  /// - Throws: `unsignedPlugin`; `missingPlugin` or `untrustedPlugin` if the file cannot be read.
  public func read(_ plugin: String) throws(InstarError) -> (contents: Data, signer: String) {
    let signing =
      "sign the plugin with a trusted key: instarctl plugin sign \(CommandText.quoted(plugin)) --key KEY"
    let path = Self.signature(of: plugin)
    let isSigned = access(path, F_OK) == 0 || errno != ENOENT
    let unsigned = "the plugin has no signature: '\(path)' does not exist"
    guard !keys.isEmpty else {
      // `TrustedKeys.explaining` says what to do about the keys.
      throw isSigned
        ? refusal(plugin, Self.noKey, nil) : refusal(plugin, "\(unsigned); \(Self.noKey)", signing)
    }
    guard isSigned else { throw refusal(plugin, unsigned, signing) }
    // One byte more than a signature shows that the file is none.
    guard let signature = Self.contents(of: path, limitBytes: Self.signatureBytes + 1) else {
      // `contents` refuses other files with this error.
      let cause =
        errno == EINVAL
        ? "is not a regular file" : "cannot be read: \(String(cString: strerror(errno)))"
      throw refusal(plugin, "'\(path)' \(cause)", signing)
    }
    guard signature.count == Self.signatureBytes else {
      var status = stat()
      let bytes = stat(path, &status) == 0 ? Int(status.st_size) : signature.count
      throw refusal(
        plugin,
        "'\(path)' has \(bytes) bytes; a signature has \(Self.signatureBytes)",
        signing)
    }
    let contents = try Self.plugin(plugin)
    guard let signer = keys.first(where: { isValid(signature, contents, $0.bytes) }) else {
      let count = keys.count == 1 ? "the trusted key did not sign" : "no trusted key signed"
      throw refusal(
        plugin, "\(count) this file: it was changed, or its signer is not trusted", signing)
    }
    return (contents, signer.name)
  }

  /// Reads a plugin as a whole.
  ///
  /// - Throws: `missingPlugin` or `untrustedPlugin`.
  public static func plugin(_ path: String) throws(InstarError) -> Data {
    guard let contents = contents(of: path, limitBytes: pluginLimitBytes + 1) else {
      throw .systemFailure(
        "cannot read plugin '\(path)'", errno,
        code: errno == ENOENT ? .missingPlugin : .untrustedPlugin,
        next: "run: ls -l \(CommandText.quoted(path))")
    }
    guard contents.count <= pluginLimitBytes else {
      throw InstarError(
        .untrustedPlugin, "cannot read plugin '\(path)'",
        cause: "the file is longer than \(pluginLimitBytes >> 20) MiB",
        next: "build the plugin again, without other data in it")
    }
    return contents
  }

  private static let noKey = "no key is trusted"

  private func refusal(_ plugin: String, _ cause: String, _ next: String?) -> InstarError {
    InstarError(.unsignedPlugin, "cannot use plugin '\(plugin)'", cause: cause, next: next)
  }

  /// - Returns: At most so many bytes; `nil` and `errno` if the file cannot be read.
  private static func contents(of path: String, limitBytes: Int) -> Data? {
    // O_NONBLOCK: opening a FIFO must not block.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    guard status.isRegular else {
      errno = EINVAL
      return nil
    }
    var data = Data()
    do {
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
      while data.count < limitBytes,
        let piece = try file.read(upToCount: min(8 << 20, limitBytes - data.count)), !piece.isEmpty
      {
        data += piece
      }
      return data
    } catch {
      errno = EIO
      return nil
    }
  }
}
