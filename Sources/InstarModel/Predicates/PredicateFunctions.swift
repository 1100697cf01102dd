import Foundation
import GRDB
import GRDBSQLite
import InstarSchema
import InstarStore

/// Functions and collations of a connection, for operations that SQLite computes differently from Swift.
///
/// They pass text to the functions with which Foundation evaluates predicates. ASCII text, which is the most
/// frequent, has a faster path with the same results. The functions are deterministic, and a store's triggers and
/// views cannot call them.
enum PredicateFunctions {
  static let contains = "instar_contains"
  static let startsWith = "instar_starts_with"
  static let localizedContains = "instar_localized_contains"
  static let caseInsensitiveCompare = "instar_case_insensitive_compare"
  static let localizedCompare = "instar_localized_compare"
  static let count = "instar_count"
  static let divide = "instar_divide"
  static let float = "instar_float"
  static let uuid = "instar_uuid"
  static let json = "instar_json"

  /// Swift's order of text: canonically equivalent texts are equal; others are ordered by Unicode scalars.
  static let textCollation = "INSTAR_TEXT"
  /// The order of `String.StandardComparator.lexical`.
  static let lexicalCollation = "INSTAR_LEXICAL"

  /// Registers the functions with a connection, once.
  static func register(_ session: SQLSession) throws(InstarError) {
    // The connection itself shows whether it has them, because several containers may share it.
    let isRegistered = try session.integer(
      "SELECT 1 FROM pragma_function_list WHERE name = '\(contains)'")
    guard isRegistered == nil, let connection = session.database.sqliteConnection else { return }
    var registration = Registration(connection: connection)
    addTextFunctions(to: &registration)
    addNumberFunctions(to: &registration)
    addStoredForms(to: &registration)
    addCollations(to: &registration)
    guard registration.isDone else {
      throw InstarError(
        .sqlFailed, "cannot open a store", cause: "SQLite refused the SDK's functions")
    }
  }

  private typealias SQLiteFunction =
    @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void
  private typealias SQLiteCollation =
    @convention(c) (
      UnsafeMutableRawPointer?, Int32, UnsafeRawPointer?, Int32, UnsafeRawPointer?
    ) -> Int32

  private struct Registration {
    let connection: OpaquePointer
    /// Whether SQLite accepted everything so far.
    private(set) var isDone = true

    mutating func add(_ name: String, _ count: Int32, _ function: SQLiteFunction) {
      let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY
      isDone =
        sqlite3_create_function_v2(connection, name, count, flags, nil, function, nil, nil, nil)
        == SQLITE_OK && isDone
    }

    mutating func addCollation(_ name: String, _ comparison: SQLiteCollation) {
      isDone =
        sqlite3_create_collation_v2(connection, name, SQLITE_UTF8, nil, comparison, nil)
        == SQLITE_OK && isDone
    }
  }

  private static func addTextFunctions(to registration: inout Registration) {
    registration.add(contains, 2) { context, _, values in
      withTexts(context, values) { sqlite3_result_int(context, $0.contains($1) ? 1 : 0) }
    }
    registration.add(startsWith, 2) { context, _, values in
      withTexts(context, values) { sqlite3_result_int(context, $0.starts(with: $1) ? 1 : 0) }
    }
    registration.add(localizedContains, 2) { context, _, values in
      withTexts(context, values) {
        sqlite3_result_int(context, $0.string.localizedStandardContains($1.string) ? 1 : 0)
      }
    }
    registration.add(caseInsensitiveCompare, 2) { context, _, values in
      withTexts(context, values) {
        let result = $0.string.caseInsensitiveCompare($1.string)
        sqlite3_result_int(context, Int32(result.rawValue))
      }
    }
    registration.add(localizedCompare, 2) { context, _, values in
      withTexts(context, values) {
        sqlite3_result_int(context, Int32($0.string.localizedCompare($1.string).rawValue))
      }
    }
    registration.add(count, 1) { context, _, values in
      guard let values, let text = SQLiteText(values[0]) else { return }
      sqlite3_result_int64(context, Int64(text.count))
    }
  }

  private static func addNumberFunctions(to registration: inout Registration) {
    registration.add(divide, 2) { context, _, values in
      guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL,
        sqlite3_value_type(values[1]) != SQLITE_NULL
      else { return }
      sqlite3_result_double(
        context, sqlite3_value_double(values[0]) / sqlite3_value_double(values[1]))
    }
    registration.add(float, 1) { context, _, values in
      guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL else { return }
      sqlite3_result_double(context, Double(Float(sqlite3_value_double(values[0]))))
    }
  }

  private static func addStoredForms(to registration: inout Registration) {
    // Converts the text of a UUID in JSON to its bytes.
    registration.add(uuid, 1) { context, _, values in
      guard let values, let text = SQLiteText(values[0]), let uuid = UUID(uuidString: text.string)
      else { return }
      withUnsafeBytes(of: uuid.uuid) {
        sqlite3_result_blob(context, $0.baseAddress, Int32($0.count), transient)
      }
    }
    // Converts a stored array to JSON. Stores of Apple's frameworks have archives.
    registration.add(json, 1) { context, _, values in
      guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL,
        let start = sqlite3_value_blob(values[0])
      else { return }
      let bytes = UnsafeRawBufferPointer(
        start: start, count: Int(sqlite3_value_bytes(values[0])))
      func answer(_ text: UnsafeRawBufferPointer) {
        sqlite3_result_text(
          context, text.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(text.count),
          transient)
      }
      // Copies the bytes only if they begin like an archive.
      if bytes.first != UInt8(ascii: "b") {
        answer(bytes)
      } else {
        ArchivedCollection.json(of: Data(bytes))?.withUnsafeBytes(answer)
      }
    }
  }

  private static func addCollations(to registration: inout Registration) {
    registration.addCollation(textCollation) { _, oneCount, one, twoCount, two in
      SQLiteText(one, oneCount).order(SQLiteText(two, twoCount))
    }
    registration.addCollation(lexicalCollation) { _, oneCount, one, twoCount, two in
      let result = String.StandardComparator.lexical.compare(
        SQLiteText(one, oneCount).string, SQLiteText(two, twoCount).string)
      return Int32(result.rawValue)
    }
  }
}

/// SQLITE_TRANSIENT: SQLite copies the result before the function returns.
private var transient: sqlite3_destructor_type {
  unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}

/// Calls `body` with both texts, unless one is NULL, which makes the result NULL.
private func withTexts(
  _ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?,
  _ body: (SQLiteText, SQLiteText) -> Void
) {
  guard let values, let one = SQLiteText(values[0]), let two = SQLiteText(values[1]) else {
    return
  }
  body(one, two)
}
