import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSignatures

/// `instarctl plugin verify`
struct PluginVerifyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check the signatures of plugins.",
    discussion: """
        instarctl plugin verify Notes.so

      Shows which trusted key signed a plugin. The exit status is 3 if none did, if the plugin was \
      changed after it was signed, or if it has no signature. The plugin is not loaded. Like instard, \
      the command trusts a key in a folder that root owns only if nobody but root can change the key's file. \
      In a folder of your own, which only an instard of your own uses, your keys count too.
      """)

  @Argument(
    help: ArgumentHelp("A plugin.", valueName: "plugin"), completion: .file(extensions: ["so"]),
    transform: FilePath.typed)
  var plugins: [String]

  @Option(
    help: ArgumentHelp(
      "The folder of the trusted public keys, files NAME.pem. (default: /etc/instar/trusted-keys.d)",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var keys = TrustedKeys.defaultFolder

  @OptionGroup var output: OutputOptions

  private struct VerifiedPlugin: CommandOutput {
    var plugin: String
    /// The name of the trusted key.
    var signer: String?
    var error: InstarError?

    var lines: [ConsoleLine] {
      signer.map { ["'\(plugin)' is signed by '\($0)'"] } ?? []
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let folder = FilePath.absolute(keys)
    // Without the folder of the service no key is trusted.
    let trusted = TrustedKeys.ofDaemon(
      using: folder == TrustedKeys.defaultFolder
        ? folder : try FilePath.ofFolder(folder, to: "read the trusted keys in"))
    // Another key may be the one that signed the plugin.
    for problem in trusted.problems {
      let next = problem.next.map { "; \($0)" } ?? ""
      Console.note(
        "warning: \(problem.what), so instard ignores it: \(problem.cause)\(next)")
    }
    let rule = SignaturePolicy(keys: trusted.keys) {
      PluginSignature.isValid($0, of: $1, by: $2)
    }
    var status = ExitStatus.done
    for plugin in plugins {
      var answer = VerifiedPlugin(plugin: FilePath.absolute(plugin))
      do throws(InstarError) {
        let path = try FilePath.ofPlugin(plugin)
        try FilePath.requireReadable(path, .notAPlugin, "cannot verify plugin '\(plugin)'")
        answer.signer = try rule.read(path).signer
      } catch {
        answer.error = trusted.explaining(error)
        if error.code == .unsignedPlugin, trusted.keys.isEmpty, trusted.problems.isEmpty {
          answer.error?.next? += "; or pass the folder of the key: --keys FOLDER"
        }
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    return status
  }
}
