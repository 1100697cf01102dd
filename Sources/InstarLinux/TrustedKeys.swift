public import Foundation
public import InstarSchema

/// The keys of the people whose plugins may be loaded: the public keys in the files `*.pem` of a folder.
public struct TrustedKeys: Sendable, Hashable {
  public static let defaultFolder = "/etc/instar/trusted-keys.d"

  /// One of the keys.
  public struct Key: Sendable, Hashable {
    /// The name of its file without `.pem`.
    public var name: String
    /// 32 bytes.
    public var bytes: Data

    public init(name: String, bytes: Data) {
      self.name = name
      self.bytes = bytes
    }
  }

  /// The folder they are from.
  public var folder: String
  /// By name.
  public var keys: [Key]
  /// Why other files of the folder count for nothing.
  public var problems: [InstarError]

  public init(folder: String, keys: [Key], problems: [InstarError] = []) {
    self.folder = folder
    self.keys = keys
    self.problems = problems
  }

  /// Reads the folder of a daemon with this process's rights: only keys that root alone could have placed count, and,
  /// for an ordinary user's daemon, that user's. Without a folder there are no keys.
  public static func ofThisDaemon(in folder: String) -> TrustedKeys {
    read(folder, owners: PathTrust.ownersForThisDaemon)
  }

  /// Reads a folder as the daemon does that uses it: a folder of root's is that of the service, which trusts only root,
  /// whoever asks. Any other one can only be that of an ordinary user's daemon.
  public static func ofDaemon(using folder: String) -> TrustedKeys {
    let isOfService = stat(following: folder)?.st_uid == 0
    return read(folder, owners: isOfService ? [0] : PathTrust.ownersForThisDaemon)
  }

  private static func read(_ folder: String, owners: Set<UInt32>) -> TrustedKeys {
    let trust = PathTrust(owners: owners, acceptsStickyFolder: true, followsLinkAtEnd: true)
    var trusted = TrustedKeys(folder: folder, keys: [])
    let names: [String]
    do throws(InstarError) {
      guard access(folder, F_OK) == 0 || errno != ENOENT else { return trusted }
      names = try FolderNames.all(in: folder, suffix: ".pem").sorted()
    } catch {
      trusted.problems.append(
        InstarError(
          .invalidKey, "cannot read the trusted keys in '\(folder)'", cause: error.cause,
          next: "run: chmod 755 \(CommandText.quoted(folder))"))
      return trusted
    }
    for name in names where !name.hasPrefix(".") {
      let path = "\(folder)/\(name)"
      do throws(InstarError) {
        try trust.require(
          path, PathTrust.File(noun: "key", untrusted: .invalidKey, missing: .invalidKey))
        trusted.keys.append(
          Key(name: String(name.dropLast(4)), bytes: try Ed25519KeyFile.read(path, .publicKey)))
      } catch {
        trusted.problems.append(error)
      }
    }
    return trusted
  }

  /// Completes the error of a plugin that is refused because no key is trusted: a key that is there may have a problem.
  public func explaining(_ error: InstarError) -> InstarError {
    guard error.code == .unsignedPlugin, keys.isEmpty else { return error }
    var error = error
    var advice: String?
    if let problem = problems.first {
      error.cause += ": \(problem.cause)"
      advice = problem.next
    } else {
      error.cause += ": there is no file '\(folder)/NAME.pem'"
      advice =
        "to trust a key, run as root: install -D -m 644 NAME.pem \(CommandText.quoted(folder + "/NAME.pem"))"
    }
    let steps = [advice, error.next].compactMap(\.self)
    error.next = steps.isEmpty ? nil : steps.joined(separator: "; then, ")
    return error
  }
}
