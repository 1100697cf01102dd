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
      "let both: Predicate<Note> = #Predicate { a.evaluate($0) && !$0.isDone }",
      """
      let both: Predicate<Note> = #_FoundationPredicate {
        a.contains($0) && !$0.isDone
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

  @Test("calls one of two or three inputs in forms that Foundation's macro knows")
  func severalInputs() {
    expectExpansion(
      "#Predicate<Note> { isIn.evaluate($0, folder) && share.evaluate($0.words, 2 * limit, $0.pages ?? 1) > 0 }",
      """
      InstarModel._PredicateJunction.all([
          #_FoundationPredicate<Note> {
            isIn[$0, default: folder]
          },
          #_FoundationPredicate<Note> {
            share.starts(with: $0.words) [2 * limit, default: $0.pages ?? 1] > 0
          }
        ])
      """)
  }

  @Test("leaves other calls of that name alone")
  func otherCalls() {
    expectExpansion(
      "#Predicate<Note> { evaluate($0) && $0.rule.evaluate(on: $0) && rule.evaluate($0, 1, 2, 3) }",
      """
      #_FoundationPredicate<Note> {
        evaluate($0) && $0.rule.evaluate(on: $0) && rule.evaluate($0, 1, 2, 3)
      }
      """)
  }

  @Test("makes a predicate of each operand if there are several other predicates")
  func junction() {
    expectExpansion(
      "#Predicate<Note> { note in a.evaluate(note) && (!b.evaluate(note) || note.isDone) && c.evaluate(note) }",
      """
      InstarModel._PredicateJunction.all([
          #_FoundationPredicate<Note> { note in
            a.contains(note)
          },
          #_FoundationPredicate<Note> { note in
            (!b.contains(note) || note.isDone)
          },
          #_FoundationPredicate<Note> { note in
            c.contains(note)
          }
        ])
      """)
  }

  @Test("makes one predicate of several inputs")
  func severalModels() {
    expectExpansion(
      "#Predicate<Note, Tag> { $0.a && $0.b && $1.c && $1.d }",
      """
      #_FoundationPredicate<Note, Tag> {
        $0.a && $0.b && $1.c && $1.d
      }
      """)
    expectExpansion(
      "#Predicate { (note: Note, tag: Tag) in note.a && note.b && tag.c && tag.d }",
      """
      #_FoundationPredicate { (note: Note, tag: Tag) in
        note.a && note.b && tag.c && tag.d
      }
      """)
  }

  @Test("makes a predicate of each operand if there are more than three conditions")
  func manyConditions() {
    expectExpansion(
      "#Predicate<Note> { $0.a > 1 && ($0.b == x || $0.c < 2 || $0.d ?? 0 > 3 || $0.e) && !$0.f }",
      """
      InstarModel._PredicateJunction.all([
          #_FoundationPredicate<Note> {
            $0.a > 1
          },
          InstarModel._PredicateJunction.any([
              #_FoundationPredicate<Note> {
                $0.b == x
              },
              #_FoundationPredicate<Note> {
                $0.c < 2
              },
              #_FoundationPredicate<Note> {
                $0.d ?? 0 > 3
              },
              #_FoundationPredicate<Note> {
                $0.e
              }
            ]),
          #_FoundationPredicate<Note> {
            !$0.f
          }
        ])
      """)
    expectExpansion(
      "#Predicate<Note> { $0.a && $0.b || $0.c }",
      """
      #_FoundationPredicate<Note> {
        $0.a && $0.b || $0.c
      }
      """)
  }
}
