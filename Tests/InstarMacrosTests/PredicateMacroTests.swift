import Testing

@Suite("#Predicate of a model")
struct PredicateMacroTests {
  @Test(
    "the expansion of #Predicate of a model is Foundation's, with its types and its closure as they are"
  )
  func handedOn() {
    expectExpansion(
      #"let isOpen = #Predicate<Note> { note in !note.isDone && note.title.contains("evaluate") }"#,
      #"""
      let isOpen = #_FoundationPredicate<Note> { note in
        !note.isDone && note.title.contains("evaluate")
      }
      """#)
  }

  @Test("#Predicate of a model calls another predicate by the name that Foundation's macro knows")
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

  @Test(
    "#Predicate of a model calls one of two or three inputs in forms that Foundation's macro knows")
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

  @Test("#Predicate of a model leaves other calls of that name alone")
  func otherCalls() {
    expectExpansion(
      "#Predicate<Note> { evaluate($0) && $0.rule.evaluate(on: $0) && rule.evaluate($0, 1, 2, 3) }",
      """
      #_FoundationPredicate<Note> {
        evaluate($0) && $0.rule.evaluate(on: $0) && rule.evaluate($0, 1, 2, 3)
      }
      """)
  }

  @Test(
    "#Predicate of a model makes a predicate of each operand if there are several other predicates")
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

  @Test("#Predicate of a model makes one predicate of several inputs")
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

  @Test(
    "#Predicate of a model makes a predicate of each operand if there are more than three conditions"
  )
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

  @Test("#Predicate of a model ignores the input in a predicate of captured values only")
  func capturedOperands() {
    expectExpansion(
      "#Predicate<Note> { text.isEmpty || $0.title == text || $0.tag ?? none == text || !(a || b) && (c) }",
      """
      InstarModel._PredicateJunction.any([
          #_FoundationPredicate<Note> { _ in
            text.isEmpty
          },
          #_FoundationPredicate<Note> {
            $0.title == text
          },
          #_FoundationPredicate<Note> {
            $0.tag ?? none == text
          },
          #_FoundationPredicate<Note> { _ in
            !(a || b) && (c)
          }
        ])
      """)
    expectExpansion(
      "#Predicate { rule.evaluate($0) && other.evaluate(text, limit) && text != nil }",
      """
      InstarModel._PredicateJunction.all([
          #_FoundationPredicate {
            rule.contains($0)
          },
          #_FoundationPredicate { _ in
            other[text, default: limit]
          },
          #_FoundationPredicate { _ in
            text != nil
          }
        ])
      """)
  }

  @Test(
    "#Predicate of a model keeps the name of its input in each operand, also where none uses it")
  func capturedOperandsWithName() {
    expectExpansion(
      "#Predicate<Note> { (note: Note) in a || note.b || names.contains { $0 == x } || c }",
      """
      InstarModel._PredicateJunction.any([
          #_FoundationPredicate<Note> { (note: Note) in
            a
          },
          #_FoundationPredicate<Note> { (note: Note) in
            note.b
          },
          #_FoundationPredicate<Note> { (note: Note) in
            names.contains {
              $0 == x
            }
          },
          #_FoundationPredicate<Note> { (note: Note) in
            c
          }
        ])
      """)
  }

  @Test("#Predicate of a model knows the inputs of closures within it from its own")
  func innerClosures() {
    expectExpansion(
      """
      #Predicate<Note> {
        $0.a && $0.tags.contains { $0.name == x } && names.contains { $0 == x } && list.min { $0 < $1 } == 1
      }
      """,
      """
      InstarModel._PredicateJunction.all([
          #_FoundationPredicate<Note> {
            $0.a
          },
          #_FoundationPredicate<Note> {
            $0.tags.contains {
              $0.name == x
            }
          },
          #_FoundationPredicate<Note> { _ in
            names.contains {
              $0 == x
            }
          },
          #_FoundationPredicate<Note> { _ in
            list.min {
              $0 < $1
            } == 1
          }
        ])
      """)
  }

  @Test(
    "#Predicate of a model stays whole where it has three inputs, a choice, or one condition for a group"
  )
  func wholes() {
    expectExpansion(
      "#Predicate<Note, Tag, Int> { $0.a && $0.b && $2 > 1 && text.isEmpty }",
      """
      #_FoundationPredicate<Note, Tag, Int> {
        $0.a && $0.b && $2 > 1 && text.isEmpty
      }
      """)
    expectExpansion(
      "#Predicate<Note> { !(text.isEmpty || $0.a || $0.b || $0.c) }",
      """
      #_FoundationPredicate<Note> {
        !(text.isEmpty || $0.a || $0.b || $0.c)
      }
      """)
    expectExpansion(
      "#Predicate<Note> { note in if let tag = note.tag { tag == x || a || b || c } else { a && b && c && d } }",
      """
      #_FoundationPredicate<Note> { note in
        if let tag = note.tag {
          tag == x || a || b || c
        } else {
          a && b && c && d
        }
      }
      """)
    expectExpansion(
      "#Predicate<Note> { text.isEmpty ? $0.a && $0.b : $0.c && $0.d }",
      """
      #_FoundationPredicate<Note> {
        text.isEmpty ? $0.a && $0.b : $0.c && $0.d
      }
      """)
  }
}
