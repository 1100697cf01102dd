import Foundation
import Glibc
import InstarKeeper
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Signed plugins")
struct SignedPluginTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
    try FileManager.default.createDirectory(
      atPath: folder.path("keys"), withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o755])
  }

  private func plugin(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(["plugin"] + arguments)
  }

  private func verify(_ plugin: String) async throws -> CommandLineTool.Answer {
    try await self.plugin("verify", plugin, "--keys", folder.path("keys"))
  }

  /// A key `NAME.key`, and whether its public key is trusted.
  private func makeKey(_ name: String, isTrusted: Bool = true) async throws -> String {
    #expect(try await plugin("keygen", folder.path(name)).status == 0)
    if isTrusted {
      try FileManager.default.copyItem(
        atPath: folder.path("\(name).pem"), toPath: folder.path("keys/\(name).pem"))
    }
    return folder.path("\(name).key")
  }

  private func copyOfPlugin() async throws -> String {
    let path = folder.path("Boxes.so")
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: path)
    return path
  }

  private func sign(_ file: String, _ key: String) async throws {
    let answer = try await plugin("sign", file, "--key", key)
    #expect(answer.status == 0, "\(answer.messages)")
  }

  @Test("the private key is its owner's alone, and no key file is ever replaced")
  func keygen() async throws {
    _ = try await makeKey("release")
    let mode = try FileManager.default.attributesOfItem(atPath: folder.path("release.key"))
    #expect(mode[.posixPermissions] as? Int == 0o600)
    let before = try folder.text(of: "release.key")
    let again = try await plugin("keygen", folder.path("release"))
    #expect(again.status == 1 && again.messages.contains("the file exists"))
    #expect(try folder.text(of: "release.key") == before)
  }

  @Test("a plugin that a trusted key signed is named with the key, among several")
  func trusted() async throws {
    let file = try await copyOfPlugin()
    _ = try await makeKey("a")
    let key = try await makeKey("b")
    _ = try await makeKey("c")
    try await sign(file, key)
    let answer = try await verify(file)
    #expect(answer.status == 0 && answer.output == "'\(file)' is signed by 'b'\n")
  }

  @Test("a missing, foreign, old or malformed signature is refused, and the error says which it is")
  func refused() async throws {
    let file = try await copyOfPlugin()
    let trusted = try await makeKey("trusted")
    let foreign = try await makeKey("foreign", isTrusted: false)
    func cause(_ expected: String, _ comment: Comment) async throws {
      let answer = try await verify(file)
      #expect(answer.status == 3, comment)
      #expect(answer.messages.contains(expected), "\(comment): \(answer.messages)")
      #expect(answer.messages.contains("[I407]"), comment)
    }
    try await cause("the plugin has no signature: '\(file).sig' does not exist", "missing")
    try await sign(file, foreign)
    try await cause("the trusted key did not sign this file", "foreign")
    try await sign(file, trusted)
    #expect(try await verify(file).status == 0)

    var bytes = try Data(contentsOf: URL(filePath: file))
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(filePath: file))
    try await cause("the trusted key did not sign this file: it was changed", "changed byte")
    try Data("-----BEGIN PGP SIGNATURE-----".utf8).write(to: URL(filePath: file + ".sig"))
    try await cause(
      "'\(file).sig' has 29 bytes; a signature has 64", "garbage")
    try Data(repeating: 0, count: 64).write(to: URL(filePath: file + ".sig"))
    try await cause("the trusted key did not sign this file", "64 bytes of garbage")
    try FileManager.default.removeItem(atPath: folder.path("keys/trusted.pem"))
    try await cause("no key is trusted", "no key")
    #expect(try await verify(file).messages.contains("--keys FOLDER"))
    try FileManager.default.removeItem(atPath: file + ".sig")
    try await cause("the plugin has no signature: '\(file).sig' does not exist; no key", "neither")
  }

  @Test("the path of a plugin in JSON is absolute, however it was typed")
  func absolutePaths() async throws {
    let (file, key) = (try await copyOfPlugin(), try await makeKey("release"))
    struct Line: Decodable { var plugin: String }
    let commands = [
      ["sign", "Boxes.so", "--key", key], ["verify", "./Boxes.so", "--keys", "keys"],
    ]
    for arguments in commands {
      let answer = try await CommandLineTool.run(
        ["plugin"] + arguments + ["--json"], in: folder.url)
      #expect(try answer.objects(Line.self).map(\.plugin) == [file], "\(answer.messages)")
    }
  }

  @Test("a key that others can change is not trusted, and the error says why, as instard's does")
  func changeableKey() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let installed = folder.path("plugins/" + (folder.names("plugins").first ?? ""))
    let key = folder.path("keys/release.pem")
    try await sign(installed, try await makeKey("release"))
    #expect(try await verify(installed).status == 0)
    try #require(chmod(key, 0o666) == 0)
    let cause = "no key is trusted: everybody can write '\(key)'"
    let answer = try await verify(installed)
    #expect(answer.status == 3 && answer.output == "", "\(answer.messages)")
    for text in [cause, "chmod go-w '\(key)'", "[I407]"] {
      #expect(answer.messages.contains(text), "\(answer.messages)")
    }
    try fixture.configure("requireSignature: true\ntrustedKeys: \(folder.path("keys"))")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=plugin-refused", in: daemon)
    #expect(daemon.capturedOutput.contains(cause), "\(daemon.capturedOutput)")
  }

  @Test(
    "a user's key in a folder of root's is not trusted, also if that user asks",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func keyOfUser() async throws {
    let user: UInt32 = 4666
    let file = try await copyOfPlugin()
    try await sign(file, try await makeKey("release"))
    let key = folder.path("keys/release.pem")
    for path in [file, SignaturePolicy.signature(of: file)] {
      try #require(chmod(path, 0o644) == 0)
    }
    try #require(chown(key, user, user) == 0)
    func verifyAsUser() throws -> (status: ChildProcess.Termination?, output: String) {
      let child = try ChildProcess.start(
        executable: "/usr/bin/setpriv",
        arguments: [
          "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all",
          CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "plugin",
          "verify", file, "--keys", folder.path("keys"),
        ], environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
      return (try child.wait(), child.capturedOutput)
    }
    let refused = try verifyAsUser()
    #expect(refused.status == .exited(3), "\(refused.output)")
    for text in [
      "warning: cannot trust key '\(key)', so instard ignores it: ", "not to root",
      "no key is trusted",
    ] { #expect(refused.output.contains(text), "\(refused.output)") }
    // Only an instard of the user's own can use such a folder.
    try #require(chown(folder.path("keys"), user, user) == 0)
    let accepted = try verifyAsUser()
    #expect(accepted.status == .exited(0), "\(accepted.output)")
    #expect(accepted.output == "'\(file)' is signed by 'release'\n")
  }

  @Test("a key file that is broken is a warning where another key signed the plugin")
  func brokenKey() async throws {
    let file = try await copyOfPlugin()
    try await sign(file, try await makeKey("release"))
    try folder.write("-----BEGIN PUBLIC KEY-----", to: "keys/broken.pem", mode: 0o644)
    let answer = try await verify(file)
    #expect(answer.status == 0 && answer.output == "'\(file)' is signed by 'release'\n")
    let warning =
      "warning: cannot read the public key '\(folder.path("keys/broken.pem"))', so instard ignores it: "
    #expect(
      answer.messages.hasPrefix(warning) && !answer.messages.contains("error:"),
      "\(answer.messages)")
    let ofFolder = try await verify(folder.path("keys"))
    #expect(ofFolder.status == 3 && ofFolder.messages.contains("cause:  not a regular file"))
  }

  @Test(
    "keys and signatures are those of OpenSSL, in both directions",
    .enabled(if: access("/usr/bin/openssl", X_OK) == 0, "openssl is not installed"))
  func openSSL() async throws {
    let file = try await copyOfPlugin()
    let key = folder.path("ssl.key")
    func openssl(_ arguments: String...) async throws {
      let answer = try await Program.run("openssl", arguments)
      #expect(answer.status == 0, "\(answer.messages)")
    }
    try await openssl("genpkey", "-algorithm", "ed25519", "-out", key)
    try await openssl("pkey", "-in", key, "-pubout", "-out", folder.path("keys/ssl.pem"))
    try await openssl(
      "pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file, "-out", file + ".sig")
    #expect(try await verify(file).output.contains("signed by 'ssl'"))
    let theirs = try Data(contentsOf: URL(filePath: file + ".sig"))
    try await sign(file, key)
    // Ed25519 has one signature for each key and file.
    #expect(try Data(contentsOf: URL(filePath: file + ".sig")) == theirs)

    let ours = try await makeKey("ours")
    try await sign(file, ours)
    try await openssl(
      "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", folder.path("ours.pem"), "-in", file,
      "-sigfile", file + ".sig")
  }

  @Test("what is not a key, or another kind of key, is refused without showing it")
  func wrongKeys() async throws {
    let file = try await copyOfPlugin()
    _ = try await makeKey("pair")
    try folder.write("secret words", to: "text.key")
    let cases: [(String, String, Int32)] = [
      ("pair.pem", "pass the private key of the pair: '\(folder.path("pair.key"))'", 3),
      ("text.key", "not a PEM file with the private key", 3),
      ("none.key", "the file does not exist", 5),
    ]
    for (name, cause, status) in cases {
      let answer = try await plugin("sign", file, "--key", folder.path(name))
      #expect(answer.status == status && answer.messages.contains(cause), "\(answer.messages)")
      #expect(!answer.messages.contains("secret words"))
    }
    try FileManager.default.copyItem(
      atPath: folder.path("pair.key"), toPath: folder.path("keys/wrong.pem"))
    let answer = try await verify(file)
    #expect(answer.messages.contains("the file contains a private key"))
    let text = try await plugin("sign", folder.path("text.key"), "--key", folder.path("pair.key"))
    #expect(text.status == 3 && text.messages.contains("[I401]"))
  }

  @Test(
    "the bytes that were signed are loaded, also if the file is replaced or rewritten after the check",
    arguments: [false, true])
  func swapped(isRewritten: Bool) async throws {
    let file = try await copyOfPlugin()
    try Data(repeating: 1, count: SignaturePolicy.signatureBytes)
      .write(to: URL(filePath: SignaturePolicy.signature(of: file)))
    let other = try Data(contentsOf: URL(filePath: try await BuiltPlugins.notes.value))
    // The check itself is the last moment before the plugin is loaded.
    let rule = SignaturePolicy(keys: [TrustedKeys.Key(name: "key", bytes: Data())]) { _, _, _ in
      (try? other.write(to: URL(filePath: file), options: isRewritten ? [] : .atomic)) != nil
    }
    let installation = try Installation.locate()
    let runtime = installation.swiftRuntimeFolder.map { [$0] } ?? []
    let products = CommandLineTool.productsFolder.path
    let worker = WorkerProcess(
      worker: installation.worker, library: installation.library, readable: runtime + [products],
      signatures: rule)
    #expect(try worker.describe(plugin: file).plans.map(\.name) == ["BoxPlan"])
    #expect(try Data(contentsOf: URL(filePath: file)) == other)
  }

  @Test(
    "a daemon that requires signatures loads a plugin when it is signed, and refuses it when its key is revoked"
  )
  func daemon() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let installed = folder.path("plugins/" + (folder.names("plugins").first ?? ""))
    try fixture.configure("requireSignature: true\ntrustedKeys: \(folder.path("keys"))")
    let store = try fixture.add("fine")
    let key = try await makeKey("release")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=plugin-refused", in: daemon)
    #expect(daemon.capturedOutput.contains("INSTAR_CODE=I407"))
    #expect(daemon.capturedOutput.contains("instarctl plugin sign"))
    #expect(try store.version() == Schema.Version(1, 0, 0))

    // The signature arrives after the plugin.
    try await sign(installed, key)
    try await fixture.wait(for: "INSTAR_EVENT=plugin-accepted", in: daemon)
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))

    // Revoked: nothing is reloaded by hand.
    try FileManager.default.removeItem(atPath: folder.path("keys/release.pem"))
    try await fixture.wait(for: "INSTAR_EVENT=plugin-refused", times: 2, in: daemon)
    #expect(daemon.capturedOutput.contains("no key is trusted"))
    let folderOfKeys = folder.path("keys")
    #expect(
      daemon.capturedOutput.contains("install -D -m 644 NAME.pem '\(folderOfKeys)/NAME.pem'"))
    #expect(!daemon.capturedOutput.contains("--keys FOLDER"))
    let later = try fixture.add("later")
    try await fixture.wait(for: "no plugin knows '\(later.path)'", in: daemon)
    #expect(try later.version() == Schema.Version(1, 0, 0))
  }
}
