// swift-format-ignore-file
import Instar
import Foundation

enum HabitSchemaV1: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
  static var models: [any PersistentModel.Type] {
    return [
      Habit.self,
      Completion.self,
    ]
  }
}

extension HabitSchemaV1 {
  @Model final class Habit: Codable {
    // Identity
    @Attribute(.unique) private(set) var uid: String = UUID().uuidString
    var name: String /* shown in the list */
    var color: Color = .init(red: 0.5, green: 0.5, blue: 0.5)
    var schedule: Schedule = Schedule.daily
    var kind: Kind = Kind.build(goal: 1)
    /// When it was made.
    var created: Date = .now
    var archived: Date?
    var reminder: DateComponents?
    var weekdays: Set<Int> = [1, 2, 3]
    var counts: [String: Int] = [:]
    var order: Int = {
      let base = 10
      return base * 2
    }()
    var link: URL? = URL(string: "https://example.com")
    var picture: Data?
    var streak: Int { completions.count }
    var isArchived: Bool {
      get { archived != nil }
      set { archived = newValue ? .now : nil }
    }

    @Relationship(deleteRule: .cascade, inverse: \Completion.habit) var completions: [Completion] = []

    @Transient private var cache: [Date: Bool] = [:]
    static var maximum = 99
    lazy var upper: String = "LAZY"

    enum CodingKeys: CodingKey { case uid, name }

    init(name: String) { self.name = name }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      self.uid = try container.decode(String.self, forKey: .uid)
      self.name = try container.decode(String.self, forKey: .name)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(uid, forKey: .uid)
      try container.encode(name, forKey: .name)
    }

    func complete(on date: Date = .now) {
      completions.append(Completion(date: date, habit: nil))
      cache[date] = true
    }
  }

  @Model final class Completion {
    var date: Date
    var note: String?
    var habit: Habit?

    init(date: Date, habit: Habit?) {
      (self.date, self.habit) = (date, habit)
    }
  }

  enum Schedule: String, Codable { case daily, weekly, monthly }

  enum Kind: Codable, Equatable {
    case build(goal: Int)
    case quit
  }

  struct Color: Codable, Equatable {
    var red, green, blue: Double
  }
}

enum HabitMigrationPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [HabitSchemaV1.self] }
  static var stages: [MigrationStage] { [] }
}

typealias Habit = HabitSchemaV1.Habit
