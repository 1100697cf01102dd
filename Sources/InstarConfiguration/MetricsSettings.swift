/// Where the daemon's metrics can be read. By default nowhere.
public struct MetricsSettings: Sendable, Hashable {
  /// Where a Prometheus server fetches the metrics. Never beyond this machine: the metrics are not encrypted, and
  /// nobody has to log in.
  public enum Address: Sendable, Hashable, CustomStringConvertible {
    /// A numeric address of the loopback interface, such as "127.0.0.1" or "::1".
    case loopback(host: String, port: UInt16)
    /// The path of a Unix socket.
    case socket(path: String)

    /// The text that 'metrics.listen' has.
    public var description: String {
      switch self {
      case .loopback(let host, let port):
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
      case .socket(let path): "unix:\(path)"
      }
    }
  }

  /// Where the daemon listens; `nil` for nowhere.
  public var address: Address?
  /// The file for the textfile collector of Prometheus' node_exporter; `nil` for none.
  public var textFile: String?

  /// Nowhere.
  public init() {}

  /// Whether somebody may read the metrics.
  public var areRead: Bool { address != nil || textFile != nil }
}
