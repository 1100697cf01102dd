public import Foundation
public import InstarSchema

/// An array, set or dictionary of plain values as `NSKeyedArchiver` writes it: how SwiftData stores `[Data]`,
/// `[String]` and the like (Core Data layout, section 3.4: transformer `NSSecureUnarchiveFromData`).
public enum ArchivedCollection {
  /// The first bytes of an archive. No JSON begins so.
  static let mark = Data("bplist00".utf8)

  /// Whether stored bytes are an archive, not JSON.
  public static func isArchive(_ data: Data) -> Bool { data.starts(with: mark) }

  /// Returns the same value as Swift's JSON coders write it, which is how Instar keeps it.
  ///
  /// - Returns: `nil` for bytes that are not an archive of a collection, contain anything but plain values (objects of
  ///   the app's own classes, decimal numbers, keys that are not strings), or take too much work. The next write would
  ///   lose what is left out.
  public static func json(of data: Data) -> Data? {
    guard isArchive(data) else { return nil }
    do {
      let archive = try KeyedArchive([UInt8](data), contentAllowance: contentAllowance)
      guard let value = try value(archive.root, in: archive, depth: 0),
        JSONSerialization.isValidJSONObject(value)
      else { return nil }
      return try JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
    } catch {
      return nil
    }
  }

  /// Returns the Swift type that an archive holds, such as "[String]"; of an object of an app's own class, the class's
  /// name.
  ///
  /// - Returns: `nil` for bytes that are not an archive, or are damaged.
  public static func typeName(of data: Data) -> String? {
    guard isArchive(data) else { return nil }
    do {
      let archive = try KeyedArchive([UInt8](data), contentAllowance: contentAllowance)
      return try typeName(of: archive.root, in: archive, depth: 0)
    } catch {
      return nil
    }
  }

  private static func typeName(
    of value: KeyedArchive.Value, in archive: KeyedArchive, depth: Int
  ) throws(KeyedArchive.Problem) -> String? {
    guard depth <= depthLimit else { throw .exhausting }
    /// The one type of all elements. An empty collection does not show it.
    func elementName(_ elements: [KeyedArchive.Value]) throws(KeyedArchive.Problem) -> String {
      var names: Set<String> = []
      for element in elements {
        names.insert(try typeName(of: element, in: archive, depth: depth + 1) ?? "Any")
      }
      return names.count == 1 ? names.first ?? "Any" : "Any"
    }
    switch try archive.resolve(value) {
    case .boolean: return "Bool"
    case .integer, .unsigned: return "Int"
    case .real: return "Double"
    case .date: return "Date"
    case .text: return "String"
    case .data: return "Data"
    case .null, .list, .reference: return nil
    case .record(let record):
      let name = record.className.replacing("Mutable", with: "")
      switch name {
      case "NSArray": return "[\(try elementName(archive.elements(value)))]"
      case "NSSet": return "Set<\(try elementName(archive.elements(value)))>"
      case "NSDictionary":
        return "[String: \(try elementName(archive.entries(value).map(\.value)))]"
      case "NSString", "NSData", "NSDate", "NSURL", "NSUUID": return String(name.dropFirst(2))
      case "NSDecimalNumber": return "Decimal"
      case "": return nil
      default: return record.className
      }
    }
  }

  private static let depthLimit = 32
  /// Equal elements are in an archive once.
  private static let contentAllowance = 16 << 20

  private static func value(
    _ value: KeyedArchive.Value, in archive: KeyedArchive, depth: Int
  ) throws(KeyedArchive.Problem) -> Any? {
    guard depth <= depthLimit else { throw .exhausting }
    switch try archive.resolve(value) {
    case .boolean(let value): return value
    case .integer(let value): return value
    case .unsigned(let value): return value
    case .real(let value), .date(let value): return value.isFinite ? value : nil
    case .text: return try archive.text(value)
    case .data: return try data(value, in: archive)
    case .null: return NSNull()
    case .record(let record): return try object(record, value, in: archive, depth: depth)
    case .list, .reference: return nil
    }
  }

  private static func object(
    _ record: KeyedArchive.Record, _ value: KeyedArchive.Value, in archive: KeyedArchive,
    depth: Int
  ) throws(KeyedArchive.Problem) -> Any? {
    switch record.className {
    case "NSArray", "NSMutableArray", "NSSet", "NSMutableSet":
      guard case .list = try archive.resolve(record["NS.objects"]) else { return nil }
      var values: [Any] = []
      for element in try archive.elements(value) {
        guard let element = try self.value(element, in: archive, depth: depth + 1) else {
          return nil
        }
        values.append(element)
      }
      return values
    case "NSDictionary", "NSMutableDictionary":
      guard case .list(let keys) = try archive.resolve(record["NS.keys"]) else { return nil }
      var values: [String: Any] = [:]
      for (key, element) in try archive.entries(value) {
        guard let element = try self.value(element, in: archive, depth: depth + 1) else {
          return nil
        }
        values[key] = element
      }
      // Entries whose keys are not strings are left out.
      return values.count == keys.count ? values : nil
    case "NSString", "NSMutableString": return try archive.text(value)
    case "NSNull": return NSNull()
    case "NSData", "NSMutableData": return try data(value, in: archive)
    case "NSDate":
      guard case .real(let time) = try archive.resolve(record["NS.time"]) else { return nil }
      return time.isFinite ? time : nil
    case "NSURL": return try archive.text(record["NS.relative"])
    case "NSUUID":
      guard case .data(let bytes) = try archive.resolve(record["NS.uuidbytes"]) else { return nil }
      return String(uuid: bytes)
    default: return nil
    }
  }

  private static func data(
    _ value: KeyedArchive.Value, in archive: KeyedArchive
  ) throws(KeyedArchive.Problem) -> String? {
    try archive.data(value).map { Data($0).base64EncodedString() }
  }

  // MARK: Writing

  /// Whether values of a type are collections of plain values, which can be archived.
  public static func canArchive(_ type: Any.Type) -> Bool {
    (type as? any ArchivableCollection.Type).map(hasPlainElements) ?? false
  }

  private static func hasPlainElements(_ type: any ArchivableCollection.Type) -> Bool {
    type.elementTypes.allSatisfy { type in
      if let type = type as? any ArchivableCollection.Type { return hasPlainElements(type) }
      let plainTypes: [Any.Type] = [
        String.self, Data.self, Date.self, UUID.self, URL.self, Bool.self, Double.self, Float.self,
      ]
      return type is any BinaryInteger.Type || plainTypes.contains { $0 == type }
    }
  }

  /// Archives a collection of plain values.
  ///
  /// - Returns: `nil` for values of other types, which Foundation cannot archive without their classes.
  /// - Throws: The error of Foundation's archiver.
  public static func archive(of value: Any) throws -> Data? {
    guard let object = object(of: value),
      object is NSArray || object is NSSet || object is NSDictionary
    else { return nil }
    return try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
  }

  /// Returns the archive of an empty array or dictionary; `nil` for any other value, because JSON does not show the
  /// types of its elements.
  public static func archive(ofEmpty json: AttributeValue) -> AttributeValue? {
    let archive: Data? =
      switch json {
      case .blob(Array("[]".utf8)): try? self.archive(of: [Any]())
      case .blob(Array("{}".utf8)): try? self.archive(of: [String: Any]())
      default: nil
      }
    return archive.map { .blob(Array($0)) }
  }

  private static func object(of value: Any) -> NSObject? {
    switch value {
    case let optional as any ArchivableOptional where optional.isNil: return NSNull()
    case let text as String: return NSString(string: text)
    case let data as Data: return NSData(data: data)
    case let date as Date:
      return NSDate(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
    case let uuid as UUID: return NSUUID(uuidString: uuid.uuidString)
    case let url as URL: return NSURL(string: url.absoluteString)
    case let bool as Bool: return NSNumber(value: bool)
    case let integer as any BinaryInteger:
      return Int64(exactly: integer).map { NSNumber(value: $0) }
        ?? UInt64(exactly: integer).map { NSNumber(value: $0) }
    case let real as Double: return NSNumber(value: real)
    case let real as Float: return NSNumber(value: real)
    case let members as Set<AnyHashable>:
      let objects = members.compactMap { object(of: $0.base) }
      return objects.count == members.count ? NSSet(array: objects) : nil
    case let elements as [Any]:
      let objects = elements.compactMap(object)
      return objects.count == elements.count ? NSArray(array: objects) : nil
    case let entries as [String: Any]:
      let objects = entries.compactMapValues(object)
      return objects.count == entries.count ? NSDictionary(dictionary: objects) : nil
    default: return nil
    }
  }
}

/// A collection whose elements may be plain values.
private protocol ArchivableCollection {
  static var elementTypes: [Any.Type] { get }
}

extension Array: ArchivableCollection {
  fileprivate static var elementTypes: [Any.Type] { [plainType(Element.self)] }
}

extension Set: ArchivableCollection {
  fileprivate static var elementTypes: [Any.Type] { [plainType(Element.self)] }
}

extension Dictionary: ArchivableCollection where Key == String {
  fileprivate static var elementTypes: [Any.Type] { [plainType(Value.self)] }
}

/// The type, or the wrapped type of an optional.
private func plainType(_ type: Any.Type) -> Any.Type {
  (type as? any ArchivableOptional.Type)?.wrappedType ?? type
}

private protocol ArchivableOptional {
  static var wrappedType: Any.Type { get }
  var isNil: Bool { get }
}

extension Optional: ArchivableOptional {
  fileprivate static var wrappedType: Any.Type { Wrapped.self }
  fileprivate var isNil: Bool { self == nil }
}
