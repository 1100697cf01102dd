/// How the hosts of a fleet take turns, through etcd.
public struct CoordinatorSettings: Sendable, Hashable {
  /// What a host does in an open wave when it loses etcd.
  public enum LossPolicy: String, Sendable, Hashable, CaseIterable {
    /// It starts no further run. Runs in progress finish.
    case pause
    /// It migrates all its stores of the wave.
    case finishWave
  }

  /// The members of the etcd cluster, such as "https://etcd1:2379".
  public var endpoints: [String] = []
  /// The file with the certificates of the authorities that etcd's certificates are checked with; `nil` for those of
  /// the system.
  public var authority: String?
  /// The file with this host's certificate; `nil` for none.
  public var certificate: String?
  /// The file with the key of that certificate.
  public var key: String?
  /// The name of this host in the fleet; `nil` for the machine's.
  public var host: String?
  /// How long a host keeps its slot without a word to etcd.
  public var lease = Duration.seconds(15)
  /// What a host does without etcd.
  public var onLoss = LossPolicy.pause

  /// Whether a text can be the name of a host in the fleet. It is a part of etcd's keys.
  public static func isHostName(_ text: String) -> Bool {
    (1...253).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || "._-".utf8.contains($0)
      }
  }

  /// No cluster.
  public init() {}
}
