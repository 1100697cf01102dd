import Instar
import InstarTestSupport

/// Predicates over `Catalog.Item` put together at random, and rows to try them on. The same seed gives the same ones.
struct RandomPredicates {
  typealias Item = Catalog.Item
  typealias Shelf = Catalog.Shelf
  typealias Label = Catalog.Label
  typealias Expressions = PredicateExpressions
  typealias Condition = any StandardPredicateExpression<Bool>
  typealias Number = any StandardPredicateExpression<Int>
  typealias Text = any StandardPredicateExpression<String>

  var random: SeededGenerator

  /// Texts that tell one way of comparing from another: case, accents composed and not, signs that are equivalent to
  /// ASCII ones, characters of several scalars, order of scalars against order of UTF-16.
  static let texts = [
    "", "a", "A", "b", "ab", "abc", "B", "K", "\u{212A}", "Kelvin", "\u{212A}elvin", "é",
    "e\u{301}",
    "caf\u{e9}", "cafe\u{301}", "cafe", "CAFE", "straße", "STRASSE", "a\r\nb", "\r", "\n", "\r\n",
    "👩‍👩‍👧", "👩", "\u{FF5E}", "\u{10000}", "a\u{301}", "Å", "\u{212B}", "%", "_", "a%b", "'",
    "zz", "Zz", ";", "\u{37E}", "ﬁ", "fi",
  ]

  // MARK: Rows

  mutating func fill(_ context: ModelContext, count: Int) {
    let rooms = ["north", "café"].map { Catalog.Room(name: $0) }
    let shelves = (0..<5).map { number in
      let shelf = Shelf(name: text())
      shelf.level = number % 2 == 0 ? nil : Int.random(in: -2...2, using: &random)
      shelf.room = number % 3 == 0 ? nil : rooms.randomElement(using: &random)
      return shelf
    }
    let labels = (0..<6).map { _ in
      let label = Label(name: text())
      label.weight = Int.random(in: -2...2, using: &random)
      return label
    }
    shelves.forEach { context.insert($0) }
    labels.forEach { context.insert($0) }
    for number in 0..<count { context.insert(item(number, shelves, labels)) }
  }

  private mutating func item(_ number: Int, _ shelves: [Shelf], _ labels: [Label]) -> Item {
    let item = Item(uid: number, title: text(), key: Self.keys[number % Self.keys.count])
    item.subtitle = maybe() ? nil : text()
    item.count = Int.random(in: -3...3, using: &random)
    item.rank = maybe() ? nil : Int.random(in: -3...3, using: &random)
    item.small = Int8.random(in: -3...3, using: &random)
    item.large = Self.larges.randomElement(using: &random) ?? 0
    item.score = Self.reals.randomElement(using: &random) ?? 0
    item.weight = Float(Self.reals.randomElement(using: &random) ?? 0)
    item.isDone = maybe()
    item.isHidden = maybe() ? nil : maybe()
    item.date = Date(timeIntervalSinceReferenceDate: Double(Int.random(in: -2...2, using: &random)))
    item.payload = maybe() ? nil : Data(repeating: 7, count: Int.random(in: 0...2, using: &random))
    item.link =
      maybe() ? nil : URL(string: "https://example.org/\(Int.random(in: 0...2, using: &random))")
    item.price = Decimal(string: ["0", "1.5", "10.11"].randomElement(using: &random) ?? "0") ?? 0
    item.unit = Catalog.Unit.allCases.randomElement(using: &random) ?? .dash
    item.level = maybe() ? nil : Catalog.Level(rawValue: choice(3) - 1)
    item.glass = [.coupe, .highball, .rocks].randomElement(using: &random) ?? .coupe
    item.author = author()
    item.editor = maybe() ? nil : author()
    item.words = (0..<choice(4)).map { _ in text() }
    item.numbers = Set((0..<choice(4)).map { _ in choice(4) - 1 })
    item.halves = maybe() ? nil : (0..<choice(3)).map { _ in Double(choice(4)) / 2 }
    item.keys = Array(Self.keys.shuffled(using: &random).prefix(choice(3)))
    item.units = (0..<choice(3)).map { _ in
      Catalog.Unit.allCases.randomElement(using: &random) ?? .dash
    }
    item.shelf = maybe() ? nil : shelves.randomElement(using: &random)
    item.labels = labels.filter { _ in Int.random(in: 0...3, using: &random) == 0 }
    return item
  }

  private mutating func author() -> Catalog.Author {
    Catalog.Author(
      name: text(), number: choice(4) - 2, isAlive: maybe(),
      unit: maybe() ? nil : Catalog.Unit.allCases.randomElement(using: &random),
      nick: maybe() ? nil : text(), works: (0..<choice(3)).map { _ in text() })
  }

  private static let larges: [UInt64] = [0, 1, 1 << 62, 1 << 63, .max - 1, .max]
  private static let reals: [Double] = [-1.5, -0.0, 0, 0.1, 0.5, 1, 2.25, 1e300]
  private static let keys = (0..<4).map { number in
    UUID(uuid: (UInt8(number * 80), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number)))
  }

  private mutating func maybe() -> Bool { Bool.random(using: &random) }
  private mutating func text() -> String { Self.texts.randomElement(using: &random) ?? "" }
  private mutating func choice(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  // MARK: Predicates

  mutating func predicate(depth: Int) -> Predicate<Item> {
    var copy = self
    defer { random = copy.random }
    return Predicate<Item> { copy.condition($0, depth) }
  }

  private mutating func condition(_ item: Expressions.Variable<Item>, _ depth: Int) -> Condition {
    if depth > 0 {
      switch choice(8) {
      case 0: return and(condition(item, depth - 1), condition(item, depth - 1))
      case 1: return or(condition(item, depth - 1), condition(item, depth - 1))
      case 2: return not(condition(item, depth - 1))
      case 3:
        return conditional(
          condition(item, depth - 1), condition(item, depth - 1), condition(item, depth - 1))
      default: break
      }
    }
    switch choice(30) {
    case 24, 25: return composite(item)
    case 26: return enumeration(item)
    case 27, 28, 29: return elements(item)
    case 0, 1: return compare(number(item, depth), number(item, depth))
    case 2: return equal(number(item, depth), number(item, depth))
    case 3, 4: return compare(text(item, depth), text(item, depth))
    case 5: return equal(text(item, depth), text(item, depth))
    case 6: return contains(text(item, depth), text(item, depth))
    case 7: return startsWith(text(item, depth), text(item, depth))
    case 8: return localizedContains(text(item, depth), constant(text()))
    case 9: return caseInsensitive(text(item, depth), text(item, depth))
    case 10: return optionalText(item)
    case 11: return optionalNumber(item)
    case 12: return listed(item)
    case 13: return ranged(item, depth)
    case 14: return real(item)
    case 15: return plainValue(item)
    case 16, 17: return shelf(item, depth)
    case 18: return unwrapped(item)
    case 19, 20, 21: return members(item, depth)
    case 22: return siblings(item, depth)
    default: return Expressions.build_KeyPath(root: item, keyPath: \.isDone)
    }
  }

  private mutating func number(_ item: Expressions.Variable<Item>, _ depth: Int) -> Number {
    if depth > 0 {
      switch choice(8) {
      case 0: return arithmetic(number(item, depth - 1), number(item, depth - 1))
      case 1: return divided(number(item, depth - 1))
      case 2: return negative(number(item, depth - 1))
      case 3: return textCount(text(item, depth - 1))
      default: break
      }
    }
    switch choice(5) {
    case 0, 1: return Expressions.build_KeyPath(root: item, keyPath: \.count)
    case 2:
      return Expressions.build_NilCoalesce(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.rank),
        rhs: Expressions.build_Arg(Int.random(in: -2...2, using: &random)))
    case 3:
      return Expressions.build_KeyPath(
        root: Expressions.build_KeyPath(root: item, keyPath: \.labels), keyPath: \.count)
    default: return Expressions.build_Arg(Int.random(in: -3...3, using: &random))
    }
  }

  private mutating func text(_ item: Expressions.Variable<Item>, _ depth: Int) -> Text {
    switch choice(4) {
    case 0, 1: return Expressions.build_KeyPath(root: item, keyPath: \.title)
    case 2:
      return Expressions.build_NilCoalesce(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.subtitle),
        rhs: Expressions.build_Arg(text()))
    default: return constant(text())
    }
  }

  private func constant(_ text: String) -> Text { Expressions.build_Arg(text) }

  private mutating func optionalText(_ item: Expressions.Variable<Item>) -> Condition {
    let subtitle = Expressions.build_KeyPath(root: item, keyPath: \.subtitle)
    switch choice(4) {
    case 0: return Expressions.build_Equal(lhs: subtitle, rhs: Expressions.build_NilLiteral())
    case 1:
      return Expressions.build_NotEqual(
        lhs: subtitle, rhs: Expressions.build_Arg(text() as String?))
    case 2:
      let title = Expressions.build_KeyPath(root: item, keyPath: \.title)
      return Expressions.build_Equal(
        lhs: subtitle,
        rhs: Expressions.build_flatMap(Expressions.build_Arg("" as String?)) { _ in title })
    default:
      let contained = Expressions.build_flatMap(subtitle) {
        Expressions.build_contains($0, Expressions.build_Arg("a"))
      }
      return Expressions.build_Equal(lhs: contained, rhs: Expressions.build_Arg(maybe() as Bool?))
    }
  }

  private mutating func optionalNumber(_ item: Expressions.Variable<Item>) -> Condition {
    let rank = Expressions.build_KeyPath(root: item, keyPath: \.rank)
    let count = Expressions.build_KeyPath(root: item, keyPath: \.count)
    switch choice(4) {
    case 0: return Expressions.build_NotEqual(lhs: rank, rhs: Expressions.build_NilLiteral())
    case 1:
      return Expressions.build_Equal(lhs: rank, rhs: Expressions.build_Arg(choice(3) as Int?))
    case 2:
      let larger = Expressions.build_flatMap(rank) {
        Expressions.build_Comparison(lhs: $0, rhs: count, op: .greaterThan)
      }
      return Expressions.build_NilCoalesce(lhs: larger, rhs: Expressions.build_Arg(maybe()))
    default:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.isHidden),
        rhs: Expressions.build_Arg(maybe() ? nil : maybe()))
    }
  }

  private mutating func composite(_ item: Expressions.Variable<Item>) -> Condition {
    let author = Expressions.build_KeyPath(root: item, keyPath: \.author)
    let editor = Expressions.build_KeyPath(root: item, keyPath: \.editor)
    switch choice(8) {
    case 0:
      return equal(Expressions.build_KeyPath(root: author, keyPath: \.name), constant(text()))
    case 1:
      return compare(
        Expressions.build_KeyPath(root: author, keyPath: \.number),
        Expressions.build_KeyPath(root: item, keyPath: \.count))
    case 2: return Expressions.build_KeyPath(root: author, keyPath: \.isAlive)
    case 3: return Expressions.build_Equal(lhs: editor, rhs: Expressions.build_NilLiteral())
    case 4:
      let name = Expressions.build_flatMap(editor) {
        Expressions.build_KeyPath(root: $0, keyPath: \.name)
      }
      return Expressions.build_NotEqual(lhs: name, rhs: Expressions.build_Arg(text() as String?))
    case 5:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: author, keyPath: \.unit),
        rhs: Expressions.build_Arg(maybe() ? nil : Catalog.Unit.ounce))
    case 6:
      let nick = Expressions.build_NilCoalesce(
        lhs: Expressions.build_KeyPath(root: author, keyPath: \.nick),
        rhs: Expressions.build_Arg("a"))
      return contains(nick, constant(text()))
    default:
      return Expressions.build_contains(
        Expressions.build_KeyPath(root: author, keyPath: \.works), Expressions.build_Arg(text()))
    }
  }

  private mutating func enumeration(_ item: Expressions.Variable<Item>) -> Condition {
    let unit = Expressions.build_KeyPath(root: item, keyPath: \.unit)
    let level = Expressions.build_KeyPath(root: item, keyPath: \.level)
    switch choice(5) {
    case 0:
      return Expressions.build_Equal(lhs: unit, rhs: Expressions.build_Arg(Catalog.Unit.spoon))
    case 1:
      return contains(
        Expressions.build_KeyPath(root: unit, keyPath: \.rawValue), constant(maybe() ? "o" : "d"))
    case 2:
      let value = Expressions.build_flatMap(level) {
        Expressions.build_KeyPath(root: $0, keyPath: \.rawValue)
      }
      return compare(
        Expressions.build_NilCoalesce(lhs: value, rhs: Expressions.build_Arg(0)),
        Expressions.build_KeyPath(root: item, keyPath: \.count))
    case 3:
      return Expressions.build_NotEqual(
        lhs: level, rhs: Expressions.build_Arg(maybe() ? nil : Catalog.Level.high))
    default:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.glass),
        rhs: Expressions.build_Arg(maybe() ? Catalog.Glass.rocks : .coupe))
    }
  }

  private mutating func elements(_ item: Expressions.Variable<Item>) -> Condition {
    let words = Expressions.build_KeyPath(root: item, keyPath: \.words)
    let numbers = Expressions.build_KeyPath(root: item, keyPath: \.numbers)
    let halves = Expressions.build_KeyPath(root: item, keyPath: \.halves)
    switch choice(9) {
    case 0: return Expressions.build_contains(words, Expressions.build_Arg(text()))
    case 1:
      return Expressions.build_contains(
        words, Expressions.build_KeyPath(root: item, keyPath: \.title))
    case 2:
      return Expressions.build_contains(
        numbers, Expressions.build_KeyPath(root: item, keyPath: \.count))
    case 3:
      return Expressions.build_contains(
        Expressions.build_NilCoalesce(lhs: halves, rhs: Expressions.build_Arg([] as [Double])),
        Expressions.build_Arg(Double(choice(4)) / 2))
    case 4:
      return Expressions.build_contains(
        Expressions.build_KeyPath(root: item, keyPath: \.keys),
        Expressions.build_KeyPath(root: item, keyPath: \.key))
    case 5:
      return Expressions.build_contains(
        Expressions.build_KeyPath(root: item, keyPath: \.units),
        Expressions.build_KeyPath(root: item, keyPath: \.unit))
    case 6:
      let part = text()
      return Expressions.build_contains(words) {
        Expressions.build_contains($0, Expressions.build_Arg(part))
      }
    case 7:
      let limit = choice(3)
      return Expressions.build_allSatisfy(numbers) {
        Expressions.build_Comparison(
          lhs: $0, rhs: Expressions.build_Arg(limit), op: .lessThan)
      }
    default:
      return compare(
        Expressions.build_KeyPath(root: words, keyPath: \.count), Expressions.build_Arg(choice(3)))
    }
  }

  private mutating func listed(_ item: Expressions.Variable<Item>) -> Condition {
    let texts = (0..<choice(4)).map { _ in text() }
    switch choice(4) {
    case 0:
      return Expressions.build_contains(
        Expressions.build_Arg(texts), Expressions.build_KeyPath(root: item, keyPath: \.title))
    case 1:
      return Expressions.build_contains(
        Expressions.build_Arg(texts.map(Optional.some) + (maybe() ? [nil] : [])),
        Expressions.build_KeyPath(root: item, keyPath: \.subtitle))
    case 2:
      return Expressions.build_contains(
        Expressions.build_Arg(Set([choice(4), -choice(4)])),
        Expressions.build_KeyPath(root: item, keyPath: \.count))
    default:
      return Expressions.build_contains(
        Expressions.build_Arg(Array(Self.keys.prefix(choice(4)))),
        Expressions.build_KeyPath(root: item, keyPath: \.key))
    }
  }

  private mutating func ranged(_ item: Expressions.Variable<Item>, _ depth: Int) -> Condition {
    let count = Expressions.build_KeyPath(root: item, keyPath: \.count)
    switch choice(4) {
    case 0:
      return Expressions.build_contains(
        Expressions.build_ClosedRange(
          lower: Expressions.build_Arg(-choice(3)), upper: Expressions.build_Arg(choice(3))), count)
    case 1:
      return Expressions.build_contains(
        Expressions.build_Range(
          lower: Expressions.build_Arg(-choice(3)), upper: Expressions.build_Arg(choice(3))), count)
    case 2:
      return Expressions.build_contains(
        Expressions.build_Arg("a"..."zz"), Expressions.build_KeyPath(root: item, keyPath: \.title))
    default: return Expressions.build_contains(Expressions.build_Arg(1...), count)
    }
  }

  private mutating func real(_ item: Expressions.Variable<Item>) -> Condition {
    let score = Expressions.build_KeyPath(root: item, keyPath: \.score)
    let weight = Expressions.build_KeyPath(root: item, keyPath: \.weight)
    let constant = Expressions.build_Arg(Self.reals.randomElement(using: &random) ?? 0)
    switch choice(5) {
    case 0:
      // Division by zero gives infinity, and NaN, which is equal to nothing.
      return Expressions.build_Comparison(
        lhs: Expressions.build_Division(lhs: score, rhs: constant), rhs: constant, op: .lessThan)
    case 1:
      return Expressions.build_NotEqual(
        lhs: Expressions.build_Division(lhs: score, rhs: constant), rhs: constant)
    case 2:
      return Expressions.build_Equal(
        lhs: Expressions.build_Arithmetic(lhs: score, rhs: constant, op: .add),
        rhs: Expressions.build_Arg(0.6))
    case 3:
      return Expressions.build_Equal(
        lhs: Expressions.build_Arithmetic(lhs: weight, rhs: weight, op: .multiply),
        rhs: Expressions.build_Arg(Float(0.1) * Float(0.1)))
    default: return Expressions.build_Comparison(lhs: score, rhs: constant, op: .greaterThanOrEqual)
    }
  }

  private mutating func plainValue(_ item: Expressions.Variable<Item>) -> Condition {
    switch choice(8) {
    case 0:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.large),
        rhs: Expressions.build_Arg(Self.larges.randomElement(using: &random) ?? 0), op: .lessThan)
    case 1:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.large),
        rhs: Expressions.build_Arg(Self.larges.randomElement(using: &random) ?? 0))
    case 2:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.date),
        rhs: Expressions.build_Arg(Date(timeIntervalSinceReferenceDate: Double(choice(3)))),
        op: .lessThanOrEqual)
    case 3:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.key),
        rhs: Expressions.build_Arg(Self.keys[choice(4)]), op: .greaterThan)
    case 4:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.payload),
        rhs: Expressions.build_Arg(Data(repeating: 7, count: choice(3)) as Data?))
    case 5:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.link),
        rhs: Expressions.build_Arg(URL(string: "https://example.org/\(choice(3))")))
    case 6:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.price),
        rhs: Expressions.build_Arg(Decimal(string: "1.5") ?? 0), op: .greaterThan)
    default:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.small),
        rhs: Expressions.build_Arg(Int8(choice(3))), op: .lessThan)
    }
  }

  // MARK: Relationships

  private mutating func shelf(_ item: Expressions.Variable<Item>, _ depth: Int) -> Condition {
    let shelf = Expressions.build_KeyPath(root: item, keyPath: \.shelf)
    switch choice(6) {
    case 0: return Expressions.build_Equal(lhs: shelf, rhs: Expressions.build_NilLiteral())
    case 1:
      let name = Expressions.build_flatMap(shelf) {
        Expressions.build_KeyPath(root: $0, keyPath: \.name)
      }
      return Expressions.build_Equal(lhs: name, rhs: Expressions.build_Arg(text() as String?))
    case 2:
      let level = Expressions.build_flatMap(shelf) {
        Expressions.build_KeyPath(root: $0, keyPath: \.level)
      }
      return Expressions.build_Equal(lhs: level, rhs: Expressions.build_NilLiteral())
    case 3:
      let level = Expressions.build_flatMap(shelf) {
        Expressions.build_NilCoalesce(
          lhs: Expressions.build_KeyPath(root: $0, keyPath: \.level), rhs: Expressions.build_Arg(1))
      }
      return Expressions.build_NotEqual(lhs: level, rhs: Expressions.build_Arg(1 as Int?))
    case 4:
      let room = Expressions.build_flatMap(shelf) {
        Expressions.build_KeyPath(root: $0, keyPath: \.room)
      }
      let name = Expressions.build_flatMap(room) {
        Expressions.build_KeyPath(root: $0, keyPath: \.name)
      }
      return Expressions.build_Equal(lhs: name, rhs: Expressions.build_Arg("café" as String?))
    default:
      let isLarge = Expressions.build_flatMap(shelf) {
        Expressions.build_Comparison(
          lhs: Expressions.build_KeyPath(
            root: Expressions.build_KeyPath(root: $0, keyPath: \.items), keyPath: \.count),
          rhs: Expressions.build_Arg(4), op: .greaterThan)
      }
      return Expressions.build_NilCoalesce(lhs: isLarge, rhs: Expressions.build_Arg(maybe()))
    }
  }

  private mutating func unwrapped(_ item: Expressions.Variable<Item>) -> Condition {
    let name = Expressions.build_KeyPath(
      root: Expressions.build_ForcedUnwrap(Expressions.build_KeyPath(root: item, keyPath: \.shelf)),
      keyPath: \.name)
    let level = Expressions.build_KeyPath(
      root: Expressions.build_ForcedUnwrap(Expressions.build_KeyPath(root: item, keyPath: \.shelf)),
      keyPath: \.level)
    let rank = Expressions.build_ForcedUnwrap(
      Expressions.build_KeyPath(root: item, keyPath: \.rank))
    let hasShelf = Expressions.build_NotEqual(
      lhs: Expressions.build_KeyPath(root: item, keyPath: \.shelf),
      rhs: Expressions.build_NilLiteral())
    switch choice(5) {
    case 0: return Expressions.build_Equal(lhs: name, rhs: Expressions.build_Arg(text()))
    case 1: return Expressions.build_Equal(lhs: level, rhs: Expressions.build_NilLiteral())
    case 2:
      return Expressions.build_Comparison(lhs: rank, rhs: Expressions.build_Arg(0), op: .lessThan)
    case 3:
      return Expressions.build_Conjunction(
        lhs: hasShelf,
        rhs: Expressions.build_NotEqual(lhs: name, rhs: Expressions.build_Arg(text())))
    default:
      return Expressions.build_Disjunction(
        lhs: Expressions.build_KeyPath(root: item, keyPath: \.isDone),
        rhs: Expressions.build_Negation(
          Expressions.build_Equal(lhs: rank, rhs: Expressions.build_Arg(choice(3)))))
    }
  }

  // The builders want to know the type of what their closure returns. The same state makes the same expression twice:
  // the first one gives the type, the second one has the builder's own variable in it.

  private mutating func members(_ item: Expressions.Variable<Item>, _ depth: Int) -> Condition {
    let labels = Expressions.build_KeyPath(root: item, keyPath: \.labels)
    let kind = choice(5)
    if kind == 0 { return Expressions.build_KeyPath(root: labels, keyPath: \.isEmpty) }
    let start = self
    func make<Test: StandardPredicateExpression<Bool>>(_ probe: Test) -> Condition {
      func test(_ variable: Expressions.Variable<Label>) -> Test {
        var copy = start
        return copy.label(variable, item) as? Test ?? probe
      }
      switch kind {
      case 1: return Expressions.build_contains(labels) { test($0) }
      case 2: return Expressions.build_allSatisfy(labels) { test($0) }
      case 3:
        return Expressions.build_Comparison(
          lhs: Expressions.build_KeyPath(
            root: Expressions.build_filter(labels) { test($0) }, keyPath: \.count),
          rhs: Expressions.build_Arg(1), op: .greaterThanOrEqual)
      default:
        return Expressions.build_allSatisfy(Expressions.build_filter(labels) { test($0) }) {
          Expressions.build_Comparison(
            lhs: Expressions.build_KeyPath(root: $0, keyPath: \.weight),
            rhs: Expressions.build_Arg(0), op: .greaterThan)
        }
      }
    }
    return make(label(Expressions.Variable<Label>(), item))
  }

  private mutating func siblings(_ item: Expressions.Variable<Item>, _ depth: Int) -> Condition {
    let shelf = Expressions.build_KeyPath(root: item, keyPath: \.shelf)
    let expected = maybe()
    let start = self
    func make<Test: StandardPredicateExpression<Bool>>(_ probe: Test) -> Condition {
      let found = Expressions.build_flatMap(shelf) {
        Expressions.build_contains(Expressions.build_KeyPath(root: $0, keyPath: \.items)) {
          var copy = start
          return copy.neighbour($0, item) as? Test ?? probe
        }
      }
      return Expressions.build_Equal(lhs: found, rhs: Expressions.build_Arg(expected as Bool?))
    }
    return make(neighbour(Expressions.Variable<Item>(), item))
  }

  /// A condition on a neighbour on the same shelf.
  private mutating func neighbour(
    _ sibling: Expressions.Variable<Item>, _ item: Expressions.Variable<Item>
  ) -> Condition {
    switch choice(3) {
    case 0:
      return Expressions.build_Conjunction(
        lhs: Expressions.build_NotEqual(lhs: sibling, rhs: item),
        rhs: Expressions.build_Equal(
          lhs: Expressions.build_KeyPath(root: sibling, keyPath: \.subtitle),
          rhs: Expressions.build_KeyPath(root: item, keyPath: \.subtitle)))
    case 1: return members(sibling, 0)
    default:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: sibling, keyPath: \.title),
        rhs: Expressions.build_KeyPath(root: item, keyPath: \.title), op: .greaterThan)
    }
  }

  private mutating func label(
    _ label: Expressions.Variable<Label>, _ item: Expressions.Variable<Item>
  ) -> Condition {
    switch choice(5) {
    case 0:
      return Expressions.build_Equal(
        lhs: Expressions.build_KeyPath(root: label, keyPath: \.name),
        rhs: Expressions.build_KeyPath(root: item, keyPath: \.title))
    case 1:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: label, keyPath: \.weight),
        rhs: Expressions.build_KeyPath(root: item, keyPath: \.count), op: .lessThan)
    case 2:
      return Expressions.build_contains(
        Expressions.build_KeyPath(root: label, keyPath: \.name), Expressions.build_Arg(text()))
    case 3:
      return Expressions.build_contains(Expressions.build_KeyPath(root: label, keyPath: \.items)) {
        Expressions.build_Comparison(
          lhs: Expressions.build_KeyPath(root: $0, keyPath: \.count),
          rhs: Expressions.build_KeyPath(root: item, keyPath: \.count), op: .greaterThan)
      }
    default:
      return Expressions.build_Comparison(
        lhs: Expressions.build_KeyPath(root: label, keyPath: \.weight),
        rhs: Expressions.build_Arg(choice(3)), op: .greaterThanOrEqual)
    }
  }

  // MARK: Combining parts whose types are known at run time only

  private func and(_ one: Condition, _ two: Condition) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<Bool>, _ two: some StandardPredicateExpression<Bool>
    ) -> Condition { Expressions.build_Conjunction(lhs: one, rhs: two) }
    return make(one, two)
  }

  private func or(_ one: Condition, _ two: Condition) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<Bool>, _ two: some StandardPredicateExpression<Bool>
    ) -> Condition { Expressions.build_Disjunction(lhs: one, rhs: two) }
    return make(one, two)
  }

  private func not(_ one: Condition) -> Condition {
    func make(_ one: some StandardPredicateExpression<Bool>) -> Condition {
      Expressions.build_Negation(one)
    }
    return make(one)
  }

  private func conditional(_ test: Condition, _ one: Condition, _ two: Condition) -> Condition {
    func make(
      _ test: some StandardPredicateExpression<Bool>, _ one: some StandardPredicateExpression<Bool>,
      _ two: some StandardPredicateExpression<Bool>
    ) -> Condition { Expressions.build_Conditional(test, one, two) }
    return make(test, one, two)
  }

  private mutating func compare(_ one: Number, _ two: Number) -> Condition {
    let sign = sign()
    func make(
      _ one: some StandardPredicateExpression<Int>, _ two: some StandardPredicateExpression<Int>
    ) -> Condition { Expressions.build_Comparison(lhs: one, rhs: two, op: sign) }
    return make(one, two)
  }

  private mutating func compare(_ one: Text, _ two: Text) -> Condition {
    let sign = sign()
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition { Expressions.build_Comparison(lhs: one, rhs: two, op: sign) }
    return make(one, two)
  }

  private mutating func sign() -> Expressions.ComparisonOperator {
    switch choice(4) {
    case 0: .lessThan
    case 1: .lessThanOrEqual
    case 2: .greaterThan
    default: .greaterThanOrEqual
    }
  }

  private func equal(_ one: Number, _ two: Number) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<Int>, _ two: some StandardPredicateExpression<Int>
    ) -> Condition { Expressions.build_Equal(lhs: one, rhs: two) }
    return make(one, two)
  }

  private func equal(_ one: Text, _ two: Text) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition { Expressions.build_Equal(lhs: one, rhs: two) }
    return make(one, two)
  }

  private func contains(_ one: Text, _ two: Text) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition { Expressions.build_contains(one, two) }
    return make(one, two)
  }

  private func startsWith(_ one: Text, _ two: Text) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition { Expressions.build_starts(one, with: two) }
    return make(one, two)
  }

  private func localizedContains(_ one: Text, _ two: Text) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition { Expressions.build_localizedStandardContains(one, two) }
    return make(one, two)
  }

  private func caseInsensitive(_ one: Text, _ two: Text) -> Condition {
    func make(
      _ one: some StandardPredicateExpression<String>,
      _ two: some StandardPredicateExpression<String>
    ) -> Condition {
      Expressions.build_Equal(
        lhs: Expressions.build_caseInsensitiveCompare(one, two),
        rhs: Expressions.build_Arg(ComparisonResult.orderedSame))
    }
    return make(one, two)
  }

  private mutating func arithmetic(_ one: Number, _ two: Number) -> Number {
    let sign: Expressions.ArithmeticOperator =
      switch choice(3) {
      case 0: .add
      case 1: .subtract
      default: .multiply
      }
    func make(
      _ one: some StandardPredicateExpression<Int>, _ two: some StandardPredicateExpression<Int>
    ) -> Number { Expressions.build_Arithmetic(lhs: one, rhs: two, op: sign) }
    return make(one, two)
  }

  private mutating func divided(_ one: Number) -> Number {
    let divisor = Expressions.build_Arg([-2, -1, 1, 2, 3].randomElement(using: &random) ?? 1)
    let isRemainder = maybe()
    func make(_ one: some StandardPredicateExpression<Int>) -> Number {
      isRemainder
        ? Expressions.build_Remainder(lhs: one, rhs: divisor)
        : Expressions.build_Division(lhs: one, rhs: divisor)
    }
    return make(one)
  }

  private func negative(_ one: Number) -> Number {
    func make(_ one: some StandardPredicateExpression<Int>) -> Number {
      Expressions.build_UnaryMinus(one)
    }
    return make(one)
  }

  private func textCount(_ one: Text) -> Number {
    func make(_ one: some StandardPredicateExpression<String>) -> Number {
      Expressions.build_KeyPath(root: one, keyPath: \.count)
    }
    return make(one)
  }
}
