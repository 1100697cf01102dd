import Instar
import InstarSchema
import InstarStore
import InstarTestSupport
import Synchronization
import Testing

@Suite("The log of statements")
struct SQLLogTests {
  /// The lines that `body` makes a connection write.
  private func lines(
    level: Int, repetitionLimit: Int? = nil, _ body: (SQLSession) throws -> Void
  ) throws -> [String] {
    let folder = try TemporaryFolder()
    let lines = Mutex<[String]>([])
    let log = SQLLog(SQLDebug(level: level), repetitionLimit: repetitionLimit) { line in
      lines.withLock { $0.append(line) }
    }
    let connection = try StoreConnection(
      path: folder.path("a.store"), durability: .durable, log: log)
    try connection.perform { try $0.run("CREATE TABLE note (id INTEGER PRIMARY KEY, title, size)") }
    lines.withLock { $0.removeAll() }
    try connection.perform(body)
    try connection.close()
    log.writeCounts()
    return lines.withLock { $0 }
  }

  private func insert(_ session: SQLSession, _ title: String, _ size: Double?) throws {
    let statement = try session.statement("INSERT INTO note (title, size) VALUES (?, ?2)")
    statement.bind(title, at: 1)
    if let size { statement.bind(size, at: 2) }
    try statement.run()
  }

  private func withoutTimes(_ lines: [String]) -> [String] {
    lines.map { $0.replacing(/[0-9]+\.[0-9]{4}s/, with: "Xs") }
  }

  @Test(
    "each statement is shown with its time and rows, as Core Data does; many of one are one line")
  func timesAndRows() throws {
    let lines = try lines(level: 1) { session in
      for number in 1...3 { try insert(session, "it's \(number)", nil) }
      let statement = try session.statement("SELECT title FROM note WHERE id > ?1")
      statement.bind(1 as Int64, at: 1)
      while try statement.step() {}
    }
    #expect(
      withoutTimes(lines) == [
        "CoreData: sql: INSERT INTO note (title, size) VALUES (?, ?2)",
        "CoreData: annotation: sql execution time: Xs, executed 3 times",
        "CoreData: sql: SELECT title FROM note WHERE id > ?1",
        "CoreData: annotation: sql connection fetch time: Xs",
        "CoreData: annotation: total fetch execution time: Xs for 2 rows.",
      ])
  }

  @Test("level 3 shows the values that are bound, level 4 also the plan")
  func valuesAndPlan() throws {
    let lines = try lines(level: 4) { session in
      try insert(session, "it's ? one", -1.5e300)
      let statement = try session.statement(
        "SELECT title FROM note WHERE id IN (?1, ?1, ?3) AND title <> '?'")
      statement.bind(7 as Int64, at: 1)
      statement.bind(Data([1, 2]), at: 3)
      while try statement.step() {}
    }
    #expect(lines.contains("CoreData: details: SQLite bind[0] = \"it's ? one\""))
    #expect(lines.contains("CoreData: details: SQLite bind[1] = (double)-1.5e+300"))
    #expect(lines.contains("CoreData: details: SQLite bind[0] = (int64)7"))
    #expect(lines.contains("CoreData: details: SQLite bind[1] = nil"))
    #expect(lines.contains("CoreData: details: SQLite bind[2] = <2 bytes>"))
    #expect(lines.contains { $0.hasPrefix("CoreData: details: SQLite: EXPLAIN QUERY PLAN SELECT") })
    #expect(lines.contains { $0.contains("SEARCH note USING INTEGER PRIMARY KEY") })
  }

  @Test(
    "a log with a limit shows a statement that runs many times that often, and then counts it",
    arguments: [1, 3])
  func repetitionLimit(level: Int) throws {
    let lines = try lines(level: level, repetitionLimit: 2) { session in
      for number in 1...100 {
        try insert(session, "\(number)", nil)
        _ = try session.integer("SELECT count(*) FROM note")
      }
    }
    #expect(lines.filter { $0.hasPrefix("CoreData: sql: INSERT") }.count == 2)
    #expect(
      withoutTimes(lines.suffix(2)) == [
        "CoreData: annotation: executed 98 more times, Xs: INSERT INTO note (title, size) VALUES (?, ?2)",
        "CoreData: annotation: executed 98 more times, Xs for 98 rows: SELECT count(*) FROM note",
      ])
  }

  @Test("values are not shown below level 3", arguments: 1...2)
  func noValues(level: Int) throws {
    let lines = try lines(level: level) { try insert($0, "secret", nil) }
    #expect(!lines.joined().contains("secret"))
  }

  @Test(
    "the level of the log of statements is the highest that launch arguments and environment ask for"
  )
  func levels() {
    func read(_ arguments: [String], _ variable: String? = nil) -> (SQLDebug, [String]) {
      SQLDebug.read(arguments, variable: variable)
    }
    let asked = read(["a", "-com.apple.CoreData.SQLDebug", "3", "b"])
    #expect(asked.0.level == 3 && asked.1 == ["a", "b"])
    #expect(read(["-com.apple.coredata.swiftdata.debug", "1"]).0.level == 1)
    #expect(read(["-com.apple.coredata.swiftdata.debug", "4"]).0.level == 1)
    #expect(read(["-com.apple.CoreData.SQLDebug", "many"]).0.level == 0)
    #expect(read(["-com.apple.CoreData.SQLDebug"]).0.level == 0)
    #expect(read([], "9").0.level == 4)
    #expect(read(["-com.apple.CoreData.SQLDebug", "1"], "2").0.level == 2)
  }
}
