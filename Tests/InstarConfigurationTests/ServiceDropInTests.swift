import InstarConfiguration
import InstarSchema
import Testing

@Suite("The drop-in of the service's unit")
struct ServiceDropInTests {
  private func dropIn(
    _ folders: [String], plugins: [String] = []
  ) throws -> ServiceDropIn {
    var configuration = Configuration()
    configuration.watches = folders.map { Configuration.Watch(folder: $0) }
    if !plugins.isEmpty { configuration.pluginFolders = plugins }
    return try ServiceDropIn(configuration, source: "/etc/instar/instard.yml")
  }

  @Test(
    "the service's drop-in opens the watched folders for writing, each once, and homes not at all")
  func folders() throws {
    #expect(
      try dropIn(["/srv/b", "/srv/a", "/srv/a/deeper", "/srv/ab"]).contents == """
        # Written by 'instarctl config apply' from /etc/instar/instard.yml.
        # The next 'instarctl config apply' overwrites this file.
        [Service]
        ReadWritePaths="-/srv/a"
        ReadWritePaths="-/srv/ab"
        ReadWritePaths="-/srv/b"

        """)
  }

  @Test("the service's drop-in opens the folders for copies of backups too")
  func backupFolders() throws {
    var configuration = Configuration()
    configuration.backupFolder = "/mnt/all"
    configuration.watches = [.init(folder: "/srv/a", backupFolder: "/mnt/a")]
    let contents = try ServiceDropIn(configuration, source: "x").contents
    for folder in ["/srv/a", "/mnt/all", "/mnt/a"] {
      #expect(contents?.contains("ReadWritePaths=\"-\(folder)\"") == true)
    }
  }

  @Test(
    "the service's drop-in gives the service the loopback interface for metrics on a port, and no other network"
  )
  func metricsPort() throws {
    var configuration = Configuration()
    configuration.metrics.address = .loopback(host: "127.0.0.1", port: 9464)
    #expect(
      try ServiceDropIn(configuration, source: "x").contents == """
        # Written by 'instarctl config apply' from x.
        # The next 'instarctl config apply' overwrites this file.
        [Service]
        # For the metrics on 127.0.0.1:9464
        PrivateNetwork=no
        RestrictAddressFamilies=AF_INET AF_INET6
        IPAddressAllow=localhost

        """)
  }

  @Test(
    "the service's drop-in opens the folders of a text file and of a socket, but not the service's own"
  )
  func metricsFiles() throws {
    var configuration = Configuration()
    configuration.metrics.textFile = "/var/lib/prometheus/node-exporter/instar.prom"
    configuration.metrics.address = .socket(path: "/run/instar/metrics.sock")
    var lines = try ServiceDropIn(configuration, source: "x").contents?.split(separator: "\n")
    #expect(lines?.dropFirst(3) == ["ReadWritePaths=\"-/var/lib/prometheus/node-exporter\""])
    configuration.metrics = MetricsSettings()
    configuration.metrics.address = .socket(path: "/run/other/metrics.sock")
    lines = try ServiceDropIn(configuration, source: "x").contents?.split(separator: "\n")
    #expect(lines?.dropFirst(3) == ["ReadWritePaths=\"-/run/other\""])
    configuration.metrics.address = .socket(path: "/run/instar/metrics.sock")
    #expect(try ServiceDropIn(configuration, source: "x").contents == nil)
  }

  @Test(
    "the service's drop-in shows homes where a watch or a plugin folder is in one",
    arguments: ["/home/a", "/root"])
  func homes(folder: String) throws {
    for dropIn in [try dropIn([folder]), try dropIn([], plugins: [folder])] {
      #expect(dropIn.contents?.contains("\nProtectHome=read-only\n") == true)
    }
    #expect(try dropIn([folder]).contents?.contains("ReadWritePaths=\"-\(folder)\"") == true)
    #expect(try dropIn([], plugins: [folder]).contents?.contains("ReadWritePaths") == false)
    #expect(try dropIn(["/homes/a", "/srv/home"]).contents?.contains("ProtectHome") == false)
  }

  @Test(
    "the service's drop-in writes names with spaces, quotes and percent signs as systemd reads them"
  )
  func names() throws {
    let contents = try dropIn([#"/srv/a b%c"d\e"#]).contents
    #expect(contents?.contains(#"ReadWritePaths="-/srv/a b%%c\"d\\e""#) == true)
  }

  @Test("a configuration that watches nothing has no drop-in")
  func none() throws {
    #expect(try dropIn([]).contents == nil)
  }

  @Test(
    "the service's drop-in does not open folders of the system",
    arguments: ["/", "/etc", "/usr/local/x", "/proc", "/sys/a", "/dev"])
  func system(folder: String) throws {
    #expect(throws: InstarError.self) { try dropIn([folder]) }
  }

  @Test("the service's drop-in says that a service does not see /tmp")
  func temporary() throws {
    #expect(
      try dropIn(["/tmp/x", "/srv/a", "/var/tmp/y", "/tmp/x"]).notes == [
        "the service cannot see '/tmp/x', '/var/tmp/y', because it has its own /tmp and /var/tmp: use other folders"
      ])
  }
}
