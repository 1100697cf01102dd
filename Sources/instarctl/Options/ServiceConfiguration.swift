import Glibc
import InstarConfiguration
import InstarLinux
import InstarSchema

/// The installed configuration of instard: it says where the service keeps its state, and where it listens.
enum ServiceConfiguration {
  static let file = "/etc/instar/instard.yml"

  /// Reads a configuration.
  ///
  /// - Parameter file: As it was typed; `nil` for that of the service, which need not exist.
  /// - Throws: `missingFile`, `invalidConfiguration`.
  static func read(_ file: String?) throws(InstarError) -> Configuration {
    let folder = Installation.serviceStateFolder
    guard let path = file.map(FilePath.absolute) ?? (FilePath.exists(Self.file) ? Self.file : nil)
    else {
      return Configuration(stateFolder: folder)
    }
    return try Configuration.read(path: path, defaultStateFolder: folder)
  }

  /// The state folder of the service. Without a readable configuration it is the built-in one.
  static var stateFolder: String { installed.configuration.stateFolder }

  /// The state folder of a command without --state-dir.
  static var defaultStateFolder: String {
    decidesStateFolder ? stateFolder : Installation.defaultStateFolder
  }

  /// Whether this user's default state folder is that of the service: root's, if no variable names another.
  static var decidesStateFolder: Bool {
    geteuid() == 0 && Installation.stateFolderOfEnvironment == nil
  }

  /// The folders that a command needs not name in --state-dir: root's, and this user's.
  static var defaultStateFolders: Set<String> { [stateFolder, defaultStateFolder] }

  /// The control socket of the service.
  static var socket: String { installed.configuration.socket }

  /// Warns where the configuration cannot be read. The command goes on: an undo must not need a configuration.
  static func noteIfUnreadable() { _ = warning }

  /// Read once: a command asks several times, and its answers must agree.
  private static let installed: (configuration: Configuration, error: InstarError?) = {
    do throws(InstarError) {
      return (try read(nil), nil)
    } catch {
      return (Configuration(stateFolder: Installation.serviceStateFolder), error)
    }
  }()

  /// Written once, when it is needed first.
  private static let warning: Void = {
    guard let error = installed.error else { return }
    Console.note(
      "warning: \(error.what): \(error.cause); using the state folder "
        + "'\(installed.configuration.stateFolder)' and the socket '\(installed.configuration.socket)', "
        + "unless --state-dir and --socket name others")
  }()
}
