/// An archive of `NSKeyedArchiver`: objects that refer to each other by number.
///
/// Classes are names only; nothing is instantiated. Each object is read once, so references may form a cycle.
final class KeyedArchive {
  typealias Problem = BinaryPropertyList.Problem

  /// A value in a field: a plain value, or the number of another object.
  enum Value {
    case null
    case boolean(Bool)
    case integer(Int64)
    case unsigned(UInt64)
    case real(Double)
    case date(Double)
    case data([UInt8])
    case text(String)
    case list([Value])
    case reference(Int)
    case record(Record)
  }

  /// An object: its class, and its fields by their keys.
  struct Record {
    var className: String
    var fields: [String: Value]

    subscript(_ key: String) -> Value { fields[key] ?? .null }
  }

  private var list: BinaryPropertyList
  /// The number in the property list of each archived object.
  private let objects: [Int]
  private var known: [Int: Value] = [:]
  /// The bytes of texts and data that may still be returned: many references may point to one large value.
  private var contentBudget: Int
  /// Field names by their numbers in the list, because all objects of a class share them.
  private var keyNames: [Int: String] = [:]

  /// The archived root object.
  let root: Value

  /// - Parameter contentAllowance: The bytes of texts and data that may be returned in addition to six times the
  ///   archive's size.
  init(_ bytes: [UInt8], contentAllowance: Int = 1 << 16) throws(Problem) {
    contentBudget = 6 * bytes.count + contentAllowance
    var list = try BinaryPropertyList(bytes)
    guard case .dictionary(let keys, let values) = try list.object(at: list.root) else {
      throw .malformed
    }
    var fields: [String: Int] = [:]
    for (key, value) in zip(keys, values) {
      if case .text(let name) = try list.object(at: key) { fields[name] = value }
    }
    guard let objectsNumber = fields["$objects"], let topNumber = fields["$top"],
      case .array(let objects) = try list.object(at: objectsNumber),
      case .dictionary(let topKeys, let topValues) = try list.object(at: topNumber)
    else { throw .malformed }
    self.objects = objects
    var root = Value.null
    for (key, value) in zip(topKeys, topValues) {
      if case .text("root") = try list.object(at: key),
        case .reference(let number) = try list.object(at: value)
      {
        root = .reference(number)
      }
    }
    self.root = root
    self.list = list
  }

  // MARK: Values

  /// Follows a reference to its value.
  func resolve(_ value: Value) throws(Problem) -> Value {
    guard case .reference(let number) = value else { return value }
    if let found = known[number] { return found }
    guard number < objects.count else { throw .malformed }
    let found = try read(objects[number])
    known[number] = found
    return found
  }

  func record(_ value: Value) throws(Problem) -> Record? {
    if case .record(let record) = try resolve(value) { return record }
    return nil
  }

  /// Returns a string, also one inside an `NSString` object.
  func text(_ value: Value) throws(Problem) -> String? {
    switch try resolve(value) {
    case .text(let text):
      try spendContent(text.utf8.count)
      return text
    case .record(let record):
      if case .text(let text) = try resolve(record["NS.string"]) {
        try spendContent(text.utf8.count)
        return text
      }
      return nil
    default: return nil
    }
  }

  /// Returns bytes, also those inside an `NSData` object.
  func data(_ value: Value) throws(Problem) -> [UInt8]? {
    var value = try resolve(value)
    if case .record(let record) = value { value = try resolve(record["NS.data"]) }
    guard case .data(let bytes) = value else { return nil }
    try spendContent(bytes.count)
    return bytes
  }

  private func spendContent(_ count: Int) throws(Problem) {
    contentBudget -= count
    guard contentBudget >= 0 else { throw .exhausting }
  }

  func integer(_ value: Value) throws(Problem) -> Int64? {
    switch try resolve(value) {
    case .integer(let integer): integer
    case .unsigned(let integer): Int64(bitPattern: integer)
    case .boolean(let boolean): boolean ? 1 : 0
    default: nil
    }
  }

  func boolean(_ value: Value) throws(Problem) -> Bool? {
    try integer(value).map { $0 != 0 }
  }

  /// Returns the elements of an array or set, and an empty list for anything else.
  func elements(_ value: Value) throws(Problem) -> [Value] {
    var value = try resolve(value)
    if case .record(let record) = value { value = try resolve(record["NS.objects"]) }
    guard case .list(let elements) = value else { return [] }
    try list.spend(elements.count)
    return elements
  }

  /// Returns the strings among the elements of an array or set.
  func texts(_ value: Value) throws(Problem) -> [String] {
    var texts: [String] = []
    for element in try elements(value) {
      if let text = try text(element) { texts.append(text) }
    }
    return texts
  }

  /// Returns the entries of a dictionary with string keys, ordered by key, and an empty list for anything else.
  ///
  /// Core Data's `NSKnownKeysDictionary1` keeps its keys in a mapping that several dictionaries share.
  func entries(_ value: Value) throws(Problem) -> [(key: String, value: Value)] {
    guard let record = try record(value) else { return [] }
    let keys: [Value]
    let values: [Value]
    if record.className == "NSKnownKeysDictionary1" {
      guard let mapping = try self.record(record["searchMapping"]) else { return [] }
      keys = try elements(mapping["keys"])
      values = try elements(record["values"])
    } else {
      keys = try elements(record["NS.keys"])
      values = try elements(record["NS.objects"])
    }
    let emptySlot = try text(record["emptyToken"])
    var entries: [(key: String, value: Value)] = []
    for (key, value) in zip(keys, values) {
      guard let key = try text(key) else { continue }
      if let emptySlot, case .text(emptySlot) = try resolve(value) { continue }
      entries.append((key, value))
    }
    return entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }

  // MARK: Reading

  private func read(_ number: Int) throws(Problem) -> Value {
    let object = try list.object(at: number)
    guard case .dictionary(let keys, let values) = object else {
      return try plain(object, depth: 0)
    }
    var fields: [String: Value] = [:]
    var className = ""
    for (key, value) in zip(keys, values) {
      guard let name = try keyName(key) else { continue }
      let field = try plain(try list.object(at: value), depth: 0)
      if name == "$class" {
        className = try self.className(field)
      } else {
        fields[name] = field
      }
    }
    return .record(Record(className: className, fields: fields))
  }

  private func keyName(_ number: Int) throws(Problem) -> String? {
    if let known = keyNames[number] { return known }
    guard case .text(let name) = try list.object(at: number) else { return nil }
    keyNames[number] = name
    return name
  }

  /// Archivers nest lists only a few levels deep in a field; anything deeper is malformed.
  private func plain(
    _ object: BinaryPropertyList.Object, depth: Int
  ) throws(Problem) -> Value {
    switch object {
    case .null: return .null
    case .boolean(let boolean): return .boolean(boolean)
    case .integer(let integer): return .integer(integer)
    case .unsigned(let integer): return .unsigned(integer)
    case .real(let real): return .real(real)
    case .date(let date): return .date(date)
    case .data(let data): return .data(data)
    // How a keyed archive writes nil.
    case .text("$null"): return .null
    case .text(let text): return .text(text)
    case .reference(let number): return .reference(number)
    case .array(let numbers):
      guard depth < 4 else { throw .malformed }
      var elements: [Value] = []
      for number in numbers {
        elements.append(try plain(try list.object(at: number), depth: depth + 1))
      }
      return .list(elements)
    case .dictionary: return .null
    }
  }

  private func className(_ value: Value) throws(Problem) -> String {
    guard case .reference(let number) = value, number < objects.count,
      case .dictionary(let keys, let values) = try list.object(at: objects[number])
    else { return "" }
    for (key, value) in zip(keys, values) {
      if try keyName(key) == "$classname",
        case .text(let name) = try list.object(at: value)
      {
        return name
      }
    }
    return ""
  }
}
