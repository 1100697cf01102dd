import InstarSchema
import Testing

@Suite("The error value")
struct InstarErrorTests {
  @Test("the text of an error says what, where, why, in which state the store is, and what to do")
  func text() {
    let error = InstarError(
      .missingRequiredValues, "cannot migrate '/srv/app/a.store' from 1.2.0 to 2.0.0",
      store: "/srv/app/a.store", stage: "AddTags (2 of 3), plugin 'notes' 0.4.1",
      cause: "14 rows of Note have no value for required attribute 'uid'", state: "unchanged",
      next: "give 'uid' a default, or fill it in willMigrate")
    #expect(
      error.description == """
        error: cannot migrate '/srv/app/a.store' from 1.2.0 to 2.0.0
          stage:  AddTags (2 of 3), plugin 'notes' 0.4.1
          cause:  14 rows of Note have no value for required attribute 'uid'
          store:  unchanged
          next:   give 'uid' a default, or fill it in willMigrate   [I204]
        """)
  }

  @Test(
    "a text with line breaks of any kind begins no line of its own",
    arguments: ["\n", "\r\n", "\r", "\u{85}", "\u{2028}"])
  func lineBreaks(_ ending: String) {
    let error = InstarError(
      .stageFailed, "cannot\(ending)error: one", stage: "A\(ending)error: two",
      cause: "b\(ending)error: three", next: "c\(ending)error: four")
    let lines = error.description.split(separator: "\n")
    #expect(lines.count == 8)
    #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") })
    #expect(!error.description.unicodeScalars.contains("\r"))
  }

  @Test("the error of a statement that does not end quotes it")
  func slowStatement() {
    let error = InstarError.overBudget("cannot run a statement", statement: "UPDATE t SET x = 1")
    #expect(error.cause.hasSuffix("while executing `UPDATE t SET x = 1`"))
    #expect(error.next?.hasPrefix("let the statement read fewer rows") == true)
    #expect(error.about(store: "/srv/a.store").next?.contains("'/srv/a.store'") == true)
  }

  @Test(
    "the error of SQL that does not end names the store in its command as soon as somebody knows the store"
  )
  func slowSQL() {
    let error = InstarError.overBudget("cannot run a statement")
    #expect(error.next?.hasSuffix("sqlite3 -readonly STORE .schema") == true)
    let known = error.about("cannot read the store", store: "/srv/it's.store")
    #expect(known.next?.hasSuffix("sqlite3 -readonly '/srv/it'\\''s.store' .schema") == true)
    #expect(known.next == InstarError.overBudget("", store: "/srv/it's.store").next)
  }

  @Test("an error keeps the advice and the store that it has")
  func keeps() {
    let error = InstarError.overBudget("cannot run a statement", store: "/srv/a.store")
    #expect(error.about(store: "/srv/b.store").next == error.next)
    #expect(error.about(store: "/srv/b.store").store == "/srv/a.store")
    let other = InstarError(.timeLimit, "cannot", cause: "slow", next: "make it faster")
    #expect(other.about(store: "/srv/b.store").next == "make it faster")
  }
}
