import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema
import InstarSignatures

/// `instarctl plugin keygen`
struct PluginKeygenCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "keygen",
    abstract: "Make a pair of keys for signing plugins.",
    discussion: """
        instarctl plugin keygen release

      Writes the private key release.key, which only you can read, and the public key release.pem. \
      Keep the private key where plugins are built. Copy the public key to /etc/instar/trusted-keys.d \
      of each machine that is to load plugins signed with it. Existing files are not replaced.
      """)

  @Argument(
    help: ArgumentHelp("The path of both files, without .key and .pem.", valueName: "name"),
    transform: FilePath.typed)
  var name: String

  @OptionGroup var output: OutputOptions

  private struct KeyPair: CommandOutput {
    var privateKey: String
    var publicKey: String

    var lines: [ConsoleLine] {
      ["private key: '\(privateKey)'", "public key:  '\(publicKey)'"]
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let path = FilePath.absolute(name)
    let answer = KeyPair(privateKey: path + ".key", publicKey: path + ".pem")
    for file in [answer.privateKey, answer.publicKey] where FilePath.exists(file) {
      throw InstarError(
        .outputFailed, "cannot write '\(file)'", cause: "the file exists",
        next:
          "choose another name; keep the old keys while plugins that are signed with them are in use"
      )
    }
    let keys = PluginSignature.makeKeys()
    try OutputFile.replace(
      answer.privateKey, by: Data(Ed25519KeyFile.text(of: keys.privateKey, .privateKey).utf8),
      mode: 0o600)
    try OutputFile.replace(
      answer.publicKey, by: Data(Ed25519KeyFile.text(of: keys.publicKey, .publicKey).utf8))
    output.write(answer)
    return .done
  }
}
