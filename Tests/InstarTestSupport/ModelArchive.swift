/// Writes archives as `NSKeyedArchiver` does, as far as models of Core Data go.
public struct ModelArchive {
  public indirect enum Value: Sendable {
    case text(String)
    case integer(Int)
    case real(Double)
    case boolean(Bool)
    case data([UInt8])
    case list([Value])
    case object(String, [String: Value])
    /// An object that was written before, by its number.
    case reference(Int)
    /// An object that others refer to, and may have before it is written.
    case named(String, Value)
    /// The object of that name.
    case link(String)

    /// An `NSDictionary`.
    public static func entries(_ entries: [(String, Value)]) -> Value {
      .object(
        "NSDictionary",
        [
          "NS.keys": .list(entries.map { .text($0.0) }), "NS.objects": .list(entries.map(\.1)),
        ])
    }

    /// What Core Data has for dictionaries whose keys several share: the keys are in a mapping, and a key may have no
    /// value.
    public static func knownKeys(
      _ entries: [(String, Value)], unused: [String] = []
    ) -> Value {
      let emptySlot = "__empty_slot_token_4c24_98dc_ac1e_b773__"
      let keys = entries.map(\.0) + unused
      return .object(
        "NSKnownKeysDictionary1",
        [
          "searchMapping": .object(
            "NSKnownKeysMappingStrategy1",
            ["keys": .array(keys.map { .text($0) }), "length": .integer(keys.count)]),
          "values": .array(entries.map(\.1) + unused.map { _ in .text(emptySlot) }),
          "emptyToken": .text(emptySlot),
        ])
    }

    /// An `NSArray`.
    public static func array(_ elements: [Value]) -> Value {
      .object("NSArray", ["NS.objects": .list(elements)])
    }
  }

  /// The archive's list of objects.
  private var objects: [Data] = [.text("$null")]
  private var classes: [String: Int] = [:]
  private var names: [String: Int] = [:]

  private indirect enum Data {
    case text(String)
    case integer(Int)
    case real(Double)
    case boolean(Bool)
    case bytes([UInt8])
    case reference(Int)
    case list([Data])
    case fields([(String, Data)])
  }

  /// The bytes of an archive whose root is that object.
  public static func bytes(_ root: Value) -> [UInt8] {
    var archive = ModelArchive()
    let number = archive.add(root)
    var writer = ListWriter()
    writer.root = writer.add(
      .fields([
        ("$version", .integer(100_000)), ("$archiver", .text("NSKeyedArchiver")),
        ("$top", .fields([("root", .reference(number))])), ("$objects", .list(archive.objects)),
      ]))
    return writer.bytes()
  }

  /// A model with these entities, each with its properties.
  public static func model(_ entities: [(String, [(String, Value)])], identifier: String = "")
    -> [UInt8]
  {
    bytes(
      .object(
        "NSManagedObjectModel",
        [
          "NSEntities": .entries(
            entities.map { name, properties in
              (
                name,
                .object(
                  "NSEntityDescription",
                  ["NSEntityName": .text(name), "NSProperties": .entries(properties)])
              )
            }),
          "NSVersionIdentifiers": .array([.text(identifier)]),
        ]))
  }

  private mutating func add(_ value: Value) -> Int {
    if case .named(let name, let value) = value { return add(value, at: number(of: name)) }
    if case .link(let name) = value { return number(of: name) }
    objects.append(.text("$null"))
    return add(value, at: objects.count - 1)
  }

  private mutating func number(of name: String) -> Int {
    if let number = names[name] { return number }
    objects.append(.text("$null"))
    names[name] = objects.count - 1
    return objects.count - 1
  }

  private mutating func add(_ value: Value, at number: Int) -> Int {
    switch value {
    case .text(let text): objects[number] = .text(text)
    case .integer(let integer): objects[number] = .integer(integer)
    case .real(let real): objects[number] = .real(real)
    case .boolean(let boolean): objects[number] = .boolean(boolean)
    case .data(let bytes): objects[number] = .bytes(bytes)
    case .list, .reference, .named, .link: break
    case .object(let name, let fields):
      var written: [(String, Data)] = []
      for (key, field) in fields.sorted(by: { $0.key < $1.key }) {
        written.append((key, self.field(field)))
      }
      written.append(("$class", .reference(classNumber(name))))
      objects[number] = .fields(written)
    }
    return number
  }

  private mutating func field(_ value: Value) -> Data {
    switch value {
    case .list(let values):
      var written: [Data] = []
      for value in values { written.append(field(value)) }
      return .list(written)
    case .integer(let integer): return .integer(integer)
    case .real(let real): return .real(real)
    case .boolean(let boolean): return .boolean(boolean)
    case .reference(let number): return .reference(number)
    default: return .reference(add(value))
    }
  }

  private mutating func classNumber(_ name: String) -> Int {
    if let number = classes[name] { return number }
    objects.append(.fields([("$classname", .text(name)), ("$classes", .list([.text(name)]))]))
    classes[name] = objects.count - 1
    return objects.count - 1
  }

  /// Writes a binary property list.
  private struct ListWriter {
    private var encoded: [[UInt8]] = []
    var root = 0

    mutating func add(_ data: Data) -> Int {
      let bytes: [UInt8]
      switch data {
      case .text(let text): bytes = marker(0x5, text.utf8.count) + Array(text.utf8)
      case .integer(let integer): bytes = [0x13] + big(integer, 8)
      case .real(let real): bytes = [0x23] + big(Int(bitPattern: UInt(real.bitPattern)), 8)
      case .boolean(let boolean): bytes = [boolean ? 0x09 : 0x08]
      case .bytes(let data): bytes = marker(0x4, data.count) + data
      case .reference(let number): bytes = [0x83] + big(number, 4)
      case .list(let elements):
        let numbers = elements.map { add($0) }
        bytes = marker(0xA, numbers.count) + numbers.flatMap { big($0, 4) }
      case .fields(let fields):
        let keys = fields.map { add(.text($0.0)) }
        let values = fields.map { add($0.1) }
        bytes = marker(0xD, keys.count) + (keys + values).flatMap { big($0, 4) }
      }
      encoded.append(bytes)
      return encoded.count - 1
    }

    func bytes() -> [UInt8] {
      var result = Array("bplist00".utf8)
      var offsets: [UInt8] = []
      for object in encoded {
        offsets += big(result.count, 4)
        result += object
      }
      let start = result.count
      return result + offsets + [0, 0, 0, 0, 0, 0, 4, 4] + big(encoded.count, 8) + big(root, 8)
        + big(start, 8)
    }

    private func marker(_ kind: UInt8, _ count: Int) -> [UInt8] {
      count < 15 ? [kind << 4 | UInt8(count)] : [kind << 4 | 15, 0x13] + big(count, 8)
    }

    private func big(_ value: Int, _ size: Int) -> [UInt8] {
      (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
  }
}
