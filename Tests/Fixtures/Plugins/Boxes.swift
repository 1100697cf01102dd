import Glibc
import Instar

// A plan that does to its worker whatever the first box of a store is named after. Only "fine", "slow", "painted",
// "waiting" and "threads" are runs that a store may come out of changed.

enum BoxSchemaV1: VersionedSchema {
  static var versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self] }

  @Model
  final class Box {
    var name: String
    var size: Int

    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

enum BoxSchemaV2: VersionedSchema {
  static var versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self] }

  @Model
  final class Box {
    var name: String
    var size: Int
    var label: String?

    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

/// A class whose values can neither be stored nor made of nothing.
final class Seal: Codable {
  init() {}
  init(from decoder: any Decoder) throws { throw BoxIsLocked() }
  func encode(to encoder: any Encoder) throws { throw BoxIsLocked() }
}

@Model
final class SealedBox {
  var seal: Seal

  init() { seal = Seal() }
}

struct BoxIsLocked: Error, CustomStringConvertible {
  var description: String { "the box is locked" }
}

enum BoxPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [BoxSchemaV1.self, BoxSchemaV2.self] }

  static var invariants: [Invariant] {
    [
      .rowsKept(of: BoxSchemaV2.Box.self, named: "every box is kept"),
      .staysEqual("SELECT ZNAME FROM ZBOX ORDER BY Z_PK", named: "the names of the boxes"),
    ]
  }

  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: BoxSchemaV1.self, toVersion: BoxSchemaV2.self,
        willMigrate: { context in
          let boxes = try context.fetch(
            FetchDescriptor<BoxSchemaV1.Box>(sortBy: [SortDescriptor(\.size)]))
          guard let first = boxes.first else { return }
          for box in boxes { box.size += 1000 }
          if first.name == "beside", let store = context.container.configurations.first {
            try Data().write(to: store.url.appendingPathExtension("done"))
          }
          if first.name == "lose" {
            for box in boxes.prefix(3) { context.delete(box) }
          }
          if first.name == "painted" { try paint(boxes, context) }
          if first.name == "alone" { try sortOnDisk(context) }
          try misbehave(first.name)
        },
        didMigrate: { context in
          for box in try context.fetch(FetchDescriptor<BoxSchemaV2.Box>()) {
            box.label = "box of \(box.size)"
          }
        })
    ]
  }

  /// Takes a tenth of a second for each box, and stops when it is told to.
  static func paint(_ boxes: [BoxSchemaV1.Box], _ context: ModelContext) throws {
    context.progress.begin("boxes painted", total: boxes.count)
    for _ in boxes {
      try context.progress.checkCancellation()
      usleep(100_000)
      context.progress.advance()
    }
  }

  /// Sorts more than SQLite keeps in memory: the rest goes to a file in its folder for temporary files.
  static func sortOnDisk(_ context: ModelContext) throws {
    let found = try context.sql(
      """
      WITH RECURSIVE number(i) AS
        (VALUES (1) UNION ALL SELECT i + 1 FROM number WHERE i < 40000)
      SELECT max(place)
      FROM (SELECT row_number() OVER (ORDER BY hex(randomblob(400))) AS place FROM number)
      """, as: Int.self)
    guard found == [40_000] else {
      throw NotAlone(description: "40000 numbers were sorted to \(found)")
    }
  }

  /// How many stores this process has worked on.
  private static var stores = 0

  struct NotAlone: Error, CustomStringConvertible {
    var description: String
  }

  static func misbehave(_ name: String) throws {
    switch name {
    case "alone":
      stores += 1
      guard stores == 1 else { throw NotAlone(description: "\(stores) stores had this worker") }
      guard Thread.isMainThread, getpid() == getpgrp() else {
        throw NotAlone(description: "the worker is not as one that was started")
      }
      MainActor.assumeIsolated { _ = stores }
    case "throw": throw BoxIsLocked()
    case "print":
      print("opened the box")
      print("closed it", terminator: "")
    case "print-throw":
      print("opened the box")
      print("closed it", terminator: "")
      throw BoxIsLocked()
    case "print-trap":
      print("opened the box")
      abort()
    case "unreadable": _ = SealedBox().seal
    case "trap":
      let none: [Int] = []
      print(none[getpid() > 0 ? 1 : 0])
    case "abort": abort()
    case "exit": exit(0)
    case "hang": while true { sleep(60) }
    case "slow": usleep(1_500_000)
    case "waiting":
      // Says that it is at work by a file beside the clone, and goes on when that is taken away.
      let marker = (ProcessInfo.processInfo.environment["TMPDIR"] ?? "") + "/at-work"
      FileManager.default.createFile(atPath: marker, contents: Data())
      while FileManager.default.fileExists(atPath: marker) { usleep(10_000) }
    case "flood":
      let line = String(repeating: "flood ", count: 1000)
      for _ in 0..<400 { print(line) }
    case "garbage":
      let text = "this is no message\n"
      _ = text.withCString { write(3, $0, strlen($0)) }
      while true { sleep(60) }
    case "memory":
      var blocks: [[UInt8]] = []
      while blocks.count < 96 { blocks.append([UInt8](repeating: 1, count: 64 << 20)) }
    case "swarm":
      for _ in 0..<12_000 { Thread.detachNewThread { while true { sleep(60) } } }
    case "bigfile":
      let file = (ProcessInfo.processInfo.environment["TMPDIR"] ?? "") + "/big"
      let descriptor = open(file, O_CREAT | O_WRONLY, 0o600)
      _ = ftruncate(descriptor, 1 << 40)
    case "threads":
      for _ in 0..<4 {
        Thread.detachNewThread { while true { usleep(100) } }
      }
    case "escape":
      // None of this may succeed: the worker is confined to its clone.
      var escaped: [String] = []
      if FileManager.default.createFile(atPath: "/tmp/instar-escaped", contents: Data()) {
        escaped.append("wrote /tmp")
      }
      if FileManager.default.contents(atPath: "/etc/passwd") != nil { escaped.append("read /etc") }
      if socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) >= 0 { escaped.append("made a socket") }
      if kill(getppid(), 0) == 0 { escaped.append("could signal its parent") }
      struct Escaped: Error, CustomStringConvertible {
        let description: String
      }
      throw Escaped(description: escaped.isEmpty ? "nothing escaped" : "escaped: \(escaped)")
    default: break
    }
  }
}

#InstarPlugin(BoxPlan.self)
