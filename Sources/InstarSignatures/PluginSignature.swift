internal import Crypto
public import Foundation
public import InstarSchema

/// The cryptography of plugins' signatures. The form of keys and signatures: `Ed25519KeyFile`, `SignaturePolicy`.
public enum PluginSignature {
  /// A new private key, and its public key: 32 bytes each.
  public static func makeKeys() -> (privateKey: Data, publicKey: Data) {
    let key = Curve25519.Signing.PrivateKey()
    return (key.rawRepresentation, key.publicKey.rawRepresentation)
  }

  /// Signs the content of a plugin.
  ///
  /// - Returns: 64 bytes, and the public key that belongs to the private one.
  /// - Throws: `invalidKey`.
  public static func sign(
    _ contents: Data, by privateKey: Data
  ) throws(InstarError) -> (signature: Data, publicKey: Data) {
    do {
      let key = try Curve25519.Signing.PrivateKey(rawRepresentation: privateKey)
      return (try key.signature(for: contents), key.publicKey.rawRepresentation)
    } catch {
      throw InstarError(
        .invalidKey, "cannot sign a plugin", cause: "the private key cannot be used: \(error)",
        next: "make a pair of keys: instarctl plugin keygen NAME")
    }
  }

  /// Whether a signature is that of these bytes by a public key. A signature or key that is malformed is not.
  public static func isValid(_ signature: Data, of contents: Data, by publicKey: Data) -> Bool {
    guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey) else {
      return false
    }
    return key.isValidSignature(signature, for: contents)
  }
}
