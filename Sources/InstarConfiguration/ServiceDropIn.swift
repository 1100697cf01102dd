import InstarLinux
public import InstarSchema

/// The part of the service's unit that follows from the configuration: which folders it may write.
///
/// `instard.service` sees the file system as read-only, and no homes. The drop-in adds only what the watches need: each
/// watched folder, each folder for copies of backups and those of the metrics for writing (`ReadWritePaths=`), and, if
/// one of them is in a home, homes for reading (`ProtectHome=read-only`). Owners and modes still decide who may write
/// what. For metrics on a port it adds the loopback interface, and no other network.
public struct ServiceDropIn: Sendable, Hashable {
  /// The path where systemd reads it.
  public static let defaultPath = "/etc/systemd/system/instard.service.d/50-watches.conf"

  /// The drop-in; `nil` where the unit needs none.
  public var contents: String?
  /// Watches that the service cannot see even with the drop-in.
  public var notes: [String]

  /// - Parameter source: The file of the configuration, for the drop-in's first line.
  /// - Throws: The first of `refusals(of:source:)`.
  public init(_ configuration: Configuration, source: String) throws(InstarError) {
    if let first = Self.refusals(of: configuration, source: source).first { throw first }
    var writable = Self.writableFolders(of: configuration)
    let hidden = Set(writable.filter { Self.lies($0, in: ["/tmp", "/var/tmp"]) }).sorted()
    let names = hidden.map { "'\($0)'" }.joined(separator: ", ")
    notes =
      hidden.isEmpty
      ? []
      : [
        "the service cannot see \(names), because it has its own /tmp and /var/tmp: "
          + "use other folders"
      ]
    // A folder in an opened folder is open too.
    writable = Set(writable).filter { folder in
      !writable.contains { $0 != folder && Self.lies(folder, in: [$0]) }
    }.sorted()
    let homes = (writable + configuration.pluginFolders).filter(Self.isInHome)

    let network = Self.network(for: configuration.metrics)
    guard !writable.isEmpty || !homes.isEmpty || !network.isEmpty else {
      contents = nil
      return
    }
    var lines = [
      "# Written by 'instarctl config apply' from \(source.split(separator: "\n").joined()).",
      "# The next 'instarctl config apply' overwrites this file.",
      "[Service]",
    ]
    if let first = homes.first {
      lines.append("# For \(first)")
      lines.append("ProtectHome=read-only")
    }
    lines += writable.map { "ReadWritePaths=\"-\(Self.escaped($0))\"" }
    lines += network
    contents = lines.joined(separator: "\n") + "\n"
  }

  /// Returns an `invalidConfiguration` for each folder that the service must not write: it belongs to the system, or
  /// its name cannot be written in a unit.
  public static func refusals(of configuration: Configuration, source: String) -> [InstarError] {
    writableFolders(of: configuration).compactMap { refusal(of: $0, source) }
  }

  private static func writableFolders(of configuration: Configuration) -> [String] {
    var folders = configuration.watches.map(\.folder)
    folders += ([configuration.backupFolder] + configuration.watches.map(\.backupFolder))
      .compactMap(\.self)
    folders += Self.folders(for: configuration.metrics)
    // The unit has a folder for the state.
    if configuration.stateFolder != Installation.defaultStateFolder {
      folders.append(configuration.stateFolder)
    }
    return folders
  }

  /// Where the metrics are put. The unit has a folder for sockets.
  private static func folders(for metrics: MetricsSettings) -> [String] {
    var files = [metrics.textFile].compactMap(\.self)
    if case .socket(let path) = metrics.address { files.append(path) }
    let socket = Installation.socket(ofStateFolder: Installation.serviceStateFolder)
    return files.map(\.parentFolder).filter { $0 != socket.parentFolder }
  }

  /// What the unit needs to listen on the loopback interface, which it does not see.
  private static func network(for metrics: MetricsSettings) -> [String] {
    guard case .loopback? = metrics.address else { return [] }
    return [
      "# For the metrics on \(metrics.address.map { "\($0)" } ?? "")",
      "PrivateNetwork=no",
      "RestrictAddressFamilies=AF_INET AF_INET6",
      "IPAddressAllow=localhost",
    ]
  }

  /// Whether a unit with `ProtectHome=yes` hides the folder.
  public static func isInHome(_ folder: String) -> Bool {
    lies(folder, in: ["/home", "/root", "/run/user"])
  }

  private static func refusal(of folder: String, _ source: String) -> InstarError? {
    let what = "cannot let the service write '\(folder)'"
    let system = ["/usr", "/etc", "/boot", "/proc", "/sys", "/dev"]
    if folder == "/" || lies(folder, in: system) {
      return InstarError(
        .invalidConfiguration, what, cause: "the folder belongs to the system",
        next: "in '\(source)', name the folder that contains the stores")
    }
    if folder.contains(where: \.isNewline) {
      return InstarError(
        .invalidConfiguration, what, cause: "the folder's name contains a line break",
        next: "rename the folder")
    }
    return nil
  }

  private static func lies(_ folder: String, in others: [String]) -> Bool {
    others.contains { folder == $0 || folder.isBelow($0) }
  }

  /// The path as systemd reads it between double quotes: `%` begins a specifier.
  private static func escaped(_ path: String) -> String {
    path.reduce(into: "") { text, character in
      switch character {
      case "\\", "\"": text += "\\\(character)"
      case "%": text += "%%"
      default: text.append(character)
      }
    }
  }
}
