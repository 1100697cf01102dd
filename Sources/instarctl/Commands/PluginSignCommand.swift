import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema
import InstarSignatures

/// `instarctl plugin sign`
struct PluginSignCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign",
    abstract: "Sign plugins, so that instard loads them where only signed ones are allowed.",
    discussion: """
        instarctl plugin keygen release
        instarctl plugin sign Notes.so --key release.key

      The signature of Notes.so is Notes.so.sig: Ed25519 of the whole file, 64 bytes. Install it \
      beside the plugin. instard loads only signed plugins if its configuration says \
      'requireSignature: true', and trusts the public keys in /etc/instar/trusted-keys.d.

      The key is a PEM file as OpenSSL writes it. OpenSSL makes the same signature, and checks it:
        openssl genpkey -algorithm ed25519 -out release.key
        openssl pkey -in release.key -pubout -out release.pem
        openssl pkeyutl -sign -rawin -inkey release.key \\
          -in Notes.so -out Notes.so.sig
        openssl pkeyutl -verify -rawin -pubin -inkey release.pem \\
          -in Notes.so -sigfile Notes.so.sig
      """)

  @Argument(
    help: ArgumentHelp("A plugin.", valueName: "plugin"), completion: .file(extensions: ["so"]),
    transform: FilePath.typed)
  var plugins: [String]

  @Option(
    help: ArgumentHelp("The private key, a PEM file.", valueName: "file"), completion: .file(),
    transform: FilePath.typed)
  var key: String

  @OptionGroup var output: OutputOptions

  private struct SignedPlugin: CommandOutput {
    var plugin: String
    var signature: String?
    /// In Base64.
    var publicKey: String?
    var error: InstarError?

    var lines: [ConsoleLine] {
      signature.map { ["signed '\(plugin)': '\($0)'"] } ?? []
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let privateKey = try Ed25519KeyFile.read(FilePath.absolute(key), .privateKey)
    var status = ExitStatus.done
    for plugin in plugins {
      var answer = SignedPlugin(plugin: FilePath.absolute(plugin))
      do throws(InstarError) {
        let path = try FilePath.ofPlugin(plugin)
        // A signature of any other file would only be found out on the machines it is installed on.
        _ = try PluginNote.read(path: path)
        let signed = try PluginSignature.sign(try SignaturePolicy.plugin(path), by: privateKey)
        let file = SignaturePolicy.signature(of: path)
        try OutputFile.replace(file, by: signed.signature)
        answer.signature = file
        answer.publicKey = signed.publicKey.base64EncodedString()
      } catch {
        answer.error = error
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    return status
  }
}
