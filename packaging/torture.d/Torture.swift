import Glibc
import Instar

// The plans that packaging/torture migrates with: one store of each format. What a stage does to its worker is in the
// store's `behaviour`, so that one plugin serves every case.

// MARK: Core Data's format

enum ParcelsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Parcel.self] }

  @Model final class Shelf {
    var behaviour: String
    @Relationship(inverse: \Parcel.shelf) var parcels: [Parcel] = []
    init(behaviour: String) { self.behaviour = behaviour }
  }

  @Model final class Parcel {
    var name: String
    var size: Int
    @Attribute(.externalStorage) var content: Data?
    var shelf: Shelf?
    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

enum ParcelsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Parcel.self] }

  @Model final class Shelf {
    var behaviour: String
    @Relationship(inverse: \Parcel.shelf) var parcels: [Parcel] = []
    init(behaviour: String) { self.behaviour = behaviour }
  }

  @Model final class Parcel {
    var name: String
    var size: Int
    var label: String?
    @Attribute(.externalStorage) var content: Data?
    var shelf: Shelf?
    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

enum ParcelsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    _ = Hook.isInstalled
    return [ParcelsV1.self, ParcelsV2.self]
  }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self,
        willMigrate: { context in
          let shelves = try context.fetch(FetchDescriptor<ParcelsV1.Shelf>())
          try Behaviour.perform(shelves.first?.behaviour ?? "", in: context)
        },
        didMigrate: { context in
          let shelves = try context.fetch(FetchDescriptor<ParcelsV2.Shelf>())
          if let name = shelves.first?.behaviour, name.hasPrefix("late ") {
            try Behaviour.perform(String(name.dropFirst(5)), in: context)
          }
          for parcel in try context.fetch(FetchDescriptor<ParcelsV2.Parcel>()) {
            parcel.size += 1000
            parcel.label = "parcel of \(parcel.size)"
            // Every fourth large value becomes another one, so that files come and go.
            if parcel.size % 4 == 0, let content = parcel.content {
              parcel.content = Data(content.reversed())
            }
          }
        })
    ]
  }
}

// MARK: Ordinary tables

enum AccountsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Account.self, Payment.self, Setting.self] }

  @Table("account") @Model final class Account {
    var id: Int
    @Attribute(.unique) var owner: String
    var balance: Int
    @Relationship(deleteRule: .cascade, inverse: \Payment.account) var payments: [Payment] = []
    init(id: Int, owner: String, balance: Int) {
      self.id = id
      self.owner = owner
      self.balance = balance
    }
  }

  @Table("payment") @Model final class Payment {
    var id: Int
    var amount: Int
    @Column("account_id") var account: Account?
    init(id: Int, amount: Int) {
      self.id = id
      self.amount = amount
    }
  }

  @Table("setting") @Model final class Setting {
    var id: Int
    var behaviour: String
    init(id: Int, behaviour: String) {
      self.id = id
      self.behaviour = behaviour
    }
  }
}

enum AccountsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Account.self, Payment.self, Setting.self] }

  @Table("account") @Model final class Account {
    var id: Int
    @Attribute(.unique) var owner: String
    @Attribute(originalName: "balance") var cents: Int
    var label: String?
    @Relationship(deleteRule: .cascade, inverse: \Payment.account) var payments: [Payment] = []
    init(id: Int, owner: String, cents: Int) {
      self.id = id
      self.owner = owner
      self.cents = cents
    }
  }

  @Table("payment") @Model final class Payment {
    var id: Int
    var amount: Int
    @Column("account_id") var account: Account?
    init(id: Int, amount: Int) {
      self.id = id
      self.amount = amount
    }
  }

  @Table("setting") @Model final class Setting {
    var id: Int
    var behaviour: String
    init(id: Int, behaviour: String) {
      self.id = id
      self.behaviour = behaviour
    }
  }
}

enum AccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    _ = Hook.isInstalled
    return [AccountsV1.self, AccountsV2.self]
  }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: AccountsV1.self, toVersion: AccountsV2.self,
        willMigrate: { context in
          let settings = try context.fetch(FetchDescriptor<AccountsV1.Setting>())
          try Behaviour.perform(settings.first?.behaviour ?? "", in: context)
        },
        didMigrate: { context in
          let settings = try context.fetch(FetchDescriptor<AccountsV2.Setting>())
          if let name = settings.first?.behaviour, name.hasPrefix("late ") {
            try Behaviour.perform(String(name.dropFirst(5)), in: context)
          }
          for account in try context.fetch(FetchDescriptor<AccountsV2.Account>()) {
            account.cents += 1000
            account.label = "account of \(account.cents)"
          }
        })
    ]
  }
}

// MARK: What a hostile plugin does

struct Refusal: Error, CustomStringConvertible {
  var description = "the stage refuses"
}

enum Behaviour {
  static let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/nowhere"
  /// It has the name of the store, which nobody tells a plugin.
  static let clone: String = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return folder + "/" + (names.first { $0.hasSuffix(".store") } ?? "no clone")
  }()

  static func perform(_ name: String, in context: ModelContext) throws {
    switch name {
    case "slow": usleep(400_000)
    case "throw": throw Refusal()
    case "trap":
      let none: [Int] = []
      print(none[getpid() > 0 ? 1 : 0])
    case "abort": abort()
    case "exit": exit(0)
    case "quick-exit": _exit(0)
    case "hang": while true { sleep(60) }
    case "spin": while getpid() > 0 {}
    case "flood": while true { print(String(repeating: "flood ", count: 1000)) }
    case "memory": allocate()
    case "threads": for _ in 0..<50_000 { inThread { sleep(60) } }
    case "descriptors": while open("/dev/urandom", O_RDONLY) >= 0 {}
    case "garbage": send("this is not a message\n")
    case "nothing": close(3)
    case "endless-line": while true { send(String(repeating: "x", count: 1 << 16)) }
    case "forged-end":
      send("{\"migrated\":{}}\n")
      sleep(1)
    case "forged-stage":
      let stage = "{\"from\":\"1.0.0\",\"kind\":\"custom\",\"to\":\"2.0.0\"}"
      for event in ["stageStarted", "stageFinished"] { send("{\"\(event)\":{\"_0\":\(stage)}}\n") }
      send("{\"migrated\":{}}\n")
      _exit(0)
    case "forged-failure":
      send(
        "{\"failed\":{\"_0\":{\"cause\":\"x\",\"code\":\"I101\",\"what\":\"y\",\"state\":\"deleted\"}}}\n"
      )
    case "forged-text":
      send("{\"sql\":{\"_0\":\"\\u001b[2J\\u0000\\n{}\"}}\n")
    case "writing-threads": for _ in 0..<4 { inThread { while true { scribble(in: clone) } } }
    case "late-write": inThread { while true { scribble(in: clone); usleep(1000) } }
    case "scribble": scribble(in: clone)
    case "truncate": truncate(clone, 512)
    case "sparse": truncate(clone, 1 << 40)
    case "sparse-file": make("sparse", size: 1 << 42)
    case "large-file": fillFile()
    case "many-files": for number in 0..<20_000 { make("file\(number)", size: 0) }
    case "deep-folders": makeDeepFolders()
    case "remove-clone": unlink(clone)
    case "replace-clone":
      make("other", size: 4096)
      rename(folder + "/other", clone)
    case "folder-for-clone":
      unlink(clone)
      mkdir(clone, 0o700)
    case "link-for-clone":
      unlink(clone)
      symlink("/etc/passwd", clone)
    case "hard-link": link(clone, folder + "/second-name")
    case "links":
      symlink("/etc", folder + "/etc")
      symlink(context.container.configurations.first?.url.path ?? "/", folder + "/store")
    case "pipe":
      mkfifo(folder + "/pipe", 0o600)
      mkfifo(clone + "-journal", 0o600)
    case "journal-left": make("a.store-journal", size: 5000)
    case "log-left": make("a.store-wal", size: 5000)
    case "mode": chmod(clone, 0)
    case "folder-mode": chmod(folder, 0)
    case "signals":
      kill(getppid(), SIGKILL)
      kill(-1, SIGKILL)
    case "write-store":
      let path = context.container.configurations.first?.url.path ?? "/nowhere"
      scribble(in: path)
      unlink(path)
      rename(clone, path)
    case "scribble-external":
      for path in context.container.configurations.map(\.url.path) { scribble(in: path + "-wal") }
    default:
      guard name.hasPrefix("sql ") else { return }
      Hook.run(String(name.dropFirst(4)))
    }
  }

  static func send(_ text: String) {
    _ = text.withCString { write(3, $0, strlen($0)) }
  }

  static func inThread(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(body)
  }

  static func scribble(in path: String) {
    let descriptor = open(path, O_RDWR)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let bytes = [UInt8](repeating: 0x5A, count: 64)
    pwrite(descriptor, bytes, 64, 4096 + off_t.random(in: 0..<8192))
  }

  static func make(_ name: String, size: off_t) {
    let descriptor = open(folder + "/" + name, O_RDWR | O_CREAT, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    write(descriptor, "x", 1)
    if size > 0 { ftruncate(descriptor, size) }
  }

  static func fillFile() {
    let descriptor = open(folder + "/large", O_RDWR | O_CREAT, 0o600)
    let bytes = [UInt8](repeating: 1, count: 1 << 20)
    for _ in 0..<512 where write(descriptor, bytes, bytes.count) < 0 { return }
  }

  static func makeDeepFolders() {
    var path = folder
    for _ in 0..<200 {
      path += "/" + String(repeating: "d", count: 15)
      mkdir(path, 0o700)
    }
  }

  static func allocate() {
    var blocks: [UnsafeMutableRawPointer] = []
    while blocks.count < 3072 {
      guard let block = malloc(1 << 20) else { abort() }
      memset(block, 1, 1 << 20)
      blocks.append(block)
    }
  }
}

/// Runs SQL on the engine's own connection to the clone, which a plugin can reach in its process.
enum Hook {
  typealias Entry =
    @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
  typealias Extension = @convention(c) (Entry) -> Int32
  typealias Execute =
    @convention(c) (
      OpaquePointer?, UnsafePointer<CChar>?, UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?
    ) -> Int32
  typealias Setting = @convention(c) (OpaquePointer?, Int32, Int32, UnsafeRawPointer?) -> Int32
  typealias Message = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
  typealias SetHook =
    @convention(c) (OpaquePointer?, UnsafeRawPointer?, UnsafeRawPointer?) -> UnsafeRawPointer?
  typealias FileName =
    @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> UnsafePointer<CChar>?

  nonisolated(unsafe) static var connections: [OpaquePointer] = []

  static func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
  }

  /// Called when the plans are asked for, before any clone is open.
  static let isInstalled: Bool = {
    guard let register = symbol("sqlite3_auto_extension", Extension.self) else { return false }
    return register({ connection, _, _ in
      if let connection { Hook.connections.append(connection) }
      return 0
    }) == 0
  }()

  /// Prints how it ended: a harm that did not happen would prove nothing.
  static func run(_ text: String) {
    guard let execute = symbol("sqlite3_exec", Execute.self),
      let setting = symbol("sqlite3_db_config", Setting.self),
      let fileName = symbol("sqlite3_db_filename", FileName.self),
      let message = symbol("sqlite3_errmsg", Message.self)
    else { return print("sql: SQLite is not there") }
    for connection in connections {
      guard let name = fileName(connection, "main"), String(cString: name) == Behaviour.clone else {
        continue
      }
      removeObservers(connection)
      // SQLITE_DBCONFIG_DEFENSIVE off, SQLITE_DBCONFIG_WRITABLE_SCHEMA on.
      _ = setting(connection, 1010, 0, nil)
      _ = setting(connection, 1011, 1, nil)
      let status = text.withCString { execute(connection, $0, nil, nil, nil) }
      print("sql: " + (status == 0 ? "done" : message(connection).map { String(cString: $0) } ?? "?"))
    }
  }

  /// The engine would refuse some statements, and notice others.
  static func removeObservers(_ connection: OpaquePointer) {
    for name in ["set_authorizer", "update_hook", "commit_hook", "rollback_hook", "preupdate_hook"] {
      guard let set = symbol("sqlite3_" + name, SetHook.self) else { continue }
      _ = set(connection, nil, nil)
    }
  }
}

#InstarPlugin(ParcelsPlan.self, AccountsPlan.self)
