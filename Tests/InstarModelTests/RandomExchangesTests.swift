import Instar
import InstarTestSupport
import Testing

/// Random values of three unique groups for six models, compared after each save with what an array says: no model
/// takes the row of another one, so each must be stored with its values.
@Suite("Random exchanges of unique values")
struct RandomExchangesTests {
  private struct Values: Equatable {
    var row: Int?
    var number = 0
    var label: String?
    var code = 0

    func isUnique(among others: [Values]) -> Bool {
      !others.contains { other in
        code == other.code || label != nil && label == other.label
          || row != nil && row == other.row && number == other.number
      }
    }
  }

  private struct Play<S: Seat> {
    let container: ModelContainer
    var context: ModelContext
    var generator: SeededGenerator
    var seats: [(model: S, values: Values)] = []
    var log: [String] = []

    init(seed: UInt64) throws {
      container = try ModelContainer.inMemory(S.self)
      context = ModelContext(container)
      generator = SeededGenerator(seed: seed)
    }

    private mutating func random(_ range: Range<Int>) -> Int {
      Int.random(in: range, using: &generator)
    }

    /// Values that none of the others have. Only some of them differ from the old ones.
    private mutating func values(from old: Values, _ others: [Values]) -> Values {
      while true {
        var new = old
        if random(0..<2) == 0 {
          new.row = random(0..<3)
          new.number = random(0..<3)
          if new.row == 0 { new.row = nil }
        }
        if random(0..<2) == 0 { new.label = random(0..<7) == 0 ? nil : "l\(random(0..<7))" }
        if random(0..<2) == 0 { new.code = random(0..<8) }
        if new.isUnique(among: others) { return new }
      }
    }

    mutating func step() throws {
      log.append("save \(seats.map { "\($0.values)" })")
      var left = seats
      for index in left.indices.reversed() where random(0..<5) == 0 {
        context.delete(left[index].model)
        left.remove(at: index)
      }
      while left.count < 6 {
        left.append((S(), Values(code: -1 - left.count)))
      }
      var new: [Values] = []
      for seat in left {
        new.append(values(from: seat.values, new))
      }
      for index in left.indices.shuffled(using: &generator) {
        let model = left[index].model
        (model.row, model.number) = (new[index].row, new[index].number)
        (model.label, model.code) = (new[index].label, new[index].code)
        context.insert(model)
        left[index].values = new[index]
      }
      seats = left
      log.append("     \(new)")
      try context.save()
      try check("in memory", seats.map(\.model))
      try container.read { try check("in the store", $0.all(S.self)) }
      if random(0..<4) == 0 { try readAgain() }
    }

    /// Takes a fresh context, in which the rows are faults.
    private mutating func readAgain() throws {
      context = ModelContext(container)
      let models = try context.all(S.self)
      seats = try seats.map { seat in
        (try #require(models.first { $0.code == seat.values.code }), seat.values)
      }
    }

    private func check(_ place: String, _ models: [S]) throws {
      let found = models.map {
        "\(Values(row: $0.row, number: $0.number, label: $0.label, code: $0.code))"
      }
      let expected = seats.map { "\($0.values)" }
      if found.sorted() != expected.sorted() {
        throw RandomLinksTests.Mismatch(
          description: "\(place): found \(found), expected \(expected)")
      }
    }
  }

  /// To repeat a failure, set `INSTAR_TEST_SEED` to the seed that it prints.
  @Test("each model has its values after each save", arguments: LinkedFormat.allCases)
  func random(format: LinkedFormat) throws {
    let fixed = ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    func play<S: Seat>(_ type: S.Type) throws {
      for _ in 0..<(fixed == nil ? 20 : 1) {
        let seed = fixed ?? UInt64.random(in: 0 ... .max)
        var play = try Play<S>(seed: seed)
        do {
          for _ in 0..<40 { try play.step() }
        } catch {
          Issue.record("seed \(seed): \(error)\n\(play.log.suffix(4).joined(separator: "\n"))")
          return
        }
      }
    }
    switch format {
    case .coreData: try play(CoreDataSeat.self)
    case .plain: try play(PlainSeat.self)
    }
  }
}

private protocol Seat: PersistentModel {
  var row: Int? { get set }
  var number: Int { get set }
  var label: String? { get set }
  var code: Int { get set }
  init()
}

@Model
private final class CoreDataSeat: Seat {
  #Unique<CoreDataSeat>([\.row, \.number], [\.label], [\.code])
  var row: Int?
  var number: Int
  var label: String?
  var code: Int
  init() {
    number = 0
    code = 0
  }
}

@Table("seat")
@Model
private final class PlainSeat: Seat {
  #Unique<PlainSeat>([\.row, \.number], [\.label], [\.code])
  var row: Int?
  var number: Int
  var label: String?
  var code: Int
  init() {
    number = 0
    code = 0
  }
}
