/// The closed list of the events of instar-coordinator, each with the `MESSAGE_ID` that the journal's catalog explains.
///
/// The raw value is the field `INSTAR_EVENT`. Scripts rely on names and ids: never change or reuse them. Make new ids
/// with `systemd-id128 new`.
public enum CoordinatorEvent: String, Sendable, Hashable, CaseIterable {
  case started = "coordinator-started"
  case stopping = "coordinator-stopping"
  case hostRegistered = "host-registered"
  case hostNameTaken = "host-name-taken"
  case leaseLost = "lease-lost"
  case slotTaken = "slot-taken"
  case slotReturned = "slot-returned"
  case hostFinished = "host-finished"
  case waveOpened = "fleet-wave-opened"
  case waveDone = "fleet-wave-done"
  case rolloutPaused = "fleet-rollout-paused"
  case rolloutHalted = "fleet-rollout-halted"
  case rolloutFinished = "fleet-rollout-finished"
  case etcdLost = "etcd-lost"
  case etcdReached = "etcd-reached"
  case daemonLost = "daemon-lost"
  case daemonReached = "daemon-reached"
  case documentRefused = "document-refused"

  /// 128 bits as 32 hexadecimal digits.
  public var messageID: String {
    switch self {
    case .started: "338e758fa0df4fcbb5506bf7ac9193db"
    case .stopping: "c469c906421e469a83cbf337180fdb5a"
    case .hostRegistered: "419f318a56a8488ebe014584e2115fac"
    case .hostNameTaken: "ce453e4b2de14a57b8f9b9ce2c359137"
    case .leaseLost: "739057e294464c82990470b20d4978e6"
    case .slotTaken: "cea706dfdb9342129981341b8e8ca186"
    case .slotReturned: "c447253931e84059af23699852aa04fc"
    case .hostFinished: "5a03a584100c4901bd69c21c7051fe56"
    case .waveOpened: "bd684a5aeb3a4ab1917e594082dbebc9"
    case .waveDone: "4a1790517cc14fceabd9563cf28695d4"
    case .rolloutPaused: "6fc36cb26b4045d5a3de7ddb25c98cae"
    case .rolloutHalted: "66cfbd32665c4aa49774bfbcdf2d9f2b"
    case .rolloutFinished: "fc18adbb44554392bea01212027e5b7a"
    case .etcdLost: "eee32063b1504708bbb93fedce23a107"
    case .etcdReached: "bcce3007d83340ada2a2d291865fdcf8"
    case .daemonLost: "755b0e3096b24a72aef7143d6f129513"
    case .daemonReached: "0a95df494c074d4e857f47b115f8ea6e"
    case .documentRefused: "76d51d25f5d5406b8f8f13d3ce5112f2"
    }
  }

  /// As of syslog(3).
  public var priority: Priority {
    switch self {
    case .hostNameTaken, .rolloutHalted, .etcdLost, .daemonLost, .documentRefused: .error
    case .leaseLost: .warning
    case .slotTaken, .hostFinished, .waveOpened, .waveDone, .rolloutPaused, .rolloutFinished,
      .etcdReached, .daemonReached:
      .notice
    case .started, .stopping, .hostRegistered, .slotReturned: .info
    }
  }

  /// How important an entry is.
  public enum Priority: Int, Sendable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
  }
}
