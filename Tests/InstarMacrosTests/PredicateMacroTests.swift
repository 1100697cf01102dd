import Testing

@Suite("#Predicate of a model")
struct PredicateMacroTests {
  @Test("is Foundation's, with its types and its closure as they are")
  func handedOn() {
    expectExpansion(
      #"let isOpen = #Predicate<Note> { note in !note.isDone && note.title.contains("evaluate") }"#,
      #"""
      let isOpen = #_FoundationPredicate<Note> { note in
        !note.isDone && note.title.contains("evaluate")
      }
      """#)
  }

  @Test("calls another predicate by the name that Foundation's macro knows")
  func nested() {
    expectExpansion(
      "let both: Predicate<Note> = #Predicate { a.evaluate($0) && !list[0].evaluate($0) }",
      """
      let both: Predicate<Note> = #_FoundationPredicate {
        a.contains($0) && !list[0].contains($0)
      }
      """)
    expectExpansion(
      "#Predicate<Author> { author in author.books.contains { isLong.evaluate($0) } }",
      """
      #_FoundationPredicate<Author> { author in
        author.books.contains {
          isLong.contains($0)
        }
      }
      """)
  }

  @Test("leaves other calls of that name alone")
  func otherCalls() {
    expectExpansion(
      "#Predicate<Note> { evaluate($0) && $0.rule.evaluate(on: $0) && $0.rule.evaluate() }",
      """
      #_FoundationPredicate<Note> {
        evaluate($0) && $0.rule.evaluate(on: $0) && $0.rule.evaluate()
      }
      """)
  }
}
