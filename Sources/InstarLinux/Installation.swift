import Foundation
import Glibc
public import InstarSchema

/// The paths of Instar's programs and libraries, found from the running program.
///
/// | part | installed | in a SwiftPM build folder |
/// |---|---|---|
/// | keeper, worker, runner of hooks | `/usr/libexec/instar/` | beside the program |
/// | `libInstar.so` | `/usr/lib/instar/` | beside the program |
/// | modules and macros of the SDK | `/usr/lib/instar/sdk/` | beside the program: `Modules/`, `InstarMacros-tool` |
///
/// A program in `/usr/bin`, `/usr/sbin` or `/usr/libexec/instar` counts as installed. `INSTAR_BUILD_DIR` in the
/// environment names a build folder to use instead.
public struct Installation: Sendable, Hashable {
  public var keeper: String
  public var worker: String
  public var library: String
  /// The folder of the Swift runtime that this process loaded; `nil` if the runtime is linked in.
  public var swiftRuntimeFolder: String?
  /// The modules that plugins are compiled against.
  public var modulesFolder: String
  public var macroExecutable: String

  public init(
    keeper: String, worker: String, library: String, swiftRuntimeFolder: String?,
    modulesFolder: String, macroExecutable: String
  ) {
    self.keeper = keeper
    self.worker = worker
    self.library = library
    self.swiftRuntimeFolder = swiftRuntimeFolder
    self.modulesFolder = modulesFolder
    self.macroExecutable = macroExecutable
  }

  /// Finds the parts that a run needs; `requireSDK()` checks those for building plugins.
  ///
  /// - Throws: `incompleteInstallation`, with the paths of what is missing.
  public static func locate() throws(InstarError) -> Installation {
    let programs = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/libexec/instar"]
    let program = try pathOfThisProgram().parentFolder
    let folder = folder(ofVariable: "INSTAR_BUILD_DIR") ?? program
    let installation =
      programs.contains(folder)
      ? Installation(
        programs: "/usr/libexec/instar", libraries: "/usr/lib/instar", sdk: "/usr/lib/instar/sdk")
      : Installation(programs: folder, libraries: folder, sdk: folder)
    try installation.require([installation.keeper, installation.worker, installation.library])
    return installation
  }

  /// The program that runs hooks, beside the keeper.
  public var hookRunner: String {
    keeper.sibling("instar-hook")
  }

  /// The build folder that all parts are in; `nil` if they are installed.
  public var buildFolder: String? {
    let folder = keeper.parentFolder
    return library.parentFolder == folder ? folder : nil
  }

  /// The program that takes turns with other hosts, beside the keeper. It belongs to a package of its own.
  public var coordinator: String {
    keeper.sibling("instar-coordinator")
  }

  /// - Throws: `incompleteInstallation`, with the paths of what building a plugin needs and is missing.
  public func requireSDK() throws(InstarError) {
    try require([modulesFolder, macroExecutable, library])
  }

  /// The state folder of the service.
  public static let serviceStateFolder = "/var/lib/instar"

  /// Where the daemon of a state folder listens, unless a flag or the configuration says otherwise: for the service's
  /// folder `/run/instar/instard.sock`, else `instard.sock` in the folder.
  public static func socket(ofStateFolder folder: String) -> String {
    folder == serviceStateFolder ? "/run/instar/instard.sock" : "\(folder)/instard.sock"
  }

  /// Where the runner of hooks listens for the daemon of a state folder, if the service manager starts the runner.
  public static func hookSocket(ofStateFolder folder: String) -> String {
    folder == serviceStateFolder ? "/run/instar/hook.sock" : "\(folder)/hook.sock"
  }

  /// Where the phase journal and the ledger live unless a flag says otherwise: `INSTAR_STATE_DIR`;
  /// else, for root, `/var/lib/instar`; else `instar` below `XDG_STATE_HOME` or `~/.local/state`.
  public static var defaultStateFolder: String {
    if geteuid() == 0, stateFolderOfEnvironment == nil {
      return serviceStateFolder
    }
    return appStateFolder
  }

  /// Where an app that migrates its own stores keeps backups, the phase journal and the ledger: `INSTAR_STATE_DIR`,
  /// else `instar` below `XDG_STATE_HOME` or `~/.local/state`, for root too.
  public static var appStateFolder: String {
    if let folder = stateFolderOfEnvironment { return folder }
    if let folder = folder(ofVariable: "XDG_STATE_HOME") { return folder + "/instar" }
    return NSHomeDirectory() + "/.local/state/instar"
  }

  /// What `INSTAR_STATE_DIR` names.
  public static var stateFolderOfEnvironment: String? { folder(ofVariable: "INSTAR_STATE_DIR") }

  private static func folder(ofVariable name: String) -> String? {
    ProcessInfo.processInfo.environment[name].flatMap {
      $0.isEmpty ? nil : URL(fileURLWithPath: $0).standardizedFileURL.path
    }
  }

  /// - Parameter sdk: The folder of the SDK's modules and macros.
  private init(programs: String, libraries: String, sdk: String) {
    self.init(
      keeper: programs + "/instar-keeper", worker: programs + "/instar-worker",
      library: libraries + "/libInstar.so", swiftRuntimeFolder: Self.loadedRuntimeFolder(),
      modulesFolder: sdk + "/Modules", macroExecutable: sdk + "/InstarMacros-tool")
  }

  private func require(_ paths: [String]) throws(InstarError) {
    let missing = paths.filter { access($0, F_OK) != 0 }
    guard missing.isEmpty else {
      throw InstarError(
        .incompleteInstallation, "cannot find all parts of Instar",
        cause: "missing: " + missing.map { "'\($0)'" }.joined(separator: ", "),
        next:
          "install the package again, run 'swift build' for all products, or set INSTAR_BUILD_DIR")
    }
  }

  private static func pathOfThisProgram() throws(InstarError) -> String {
    guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    else {
      throw InstarError(
        .incompleteInstallation, "cannot find all parts of Instar",
        cause: "/proc/self/exe cannot be read",
        next: "mount /proc, or set INSTAR_BUILD_DIR")
    }
    return path
  }

  private static func loadedRuntimeFolder() -> String? {
    guard let file = FileHandle(forReadingAtPath: "/proc/self/maps") else { return nil }
    // The kernel gives one page at a time, which Foundation's reading of whole files takes for the end.
    var contents = Data()
    while let piece = try? file.read(upToCount: 1 << 16), !piece.isEmpty { contents += piece }
    let maps = String(decoding: contents, as: UTF8.self)
    for line in maps.split(separator: "\n") where line.hasSuffix("/libswiftCore.so") {
      if let path = line.firstIndex(of: "/") {
        return String(line[path...]).parentFolder
      }
    }
    return nil
  }
}
