import Instar
import Synchronization
import Testing

/// Each row of the page's table: which change a lightweight stage makes by itself, and which it refuses and code makes.
@Suite("API page: which change needs what")
struct ChangeTableConformanceTests {
  private let store = ModelConfiguration(isStoredInMemoryOnly: true)

  private func make(
    _ version: any VersionedSchema.Type, _ fill: (ModelContext) throws -> Void
  ) throws -> ModelContainer {
    let container = try ModelContainer(
      for: Schema(versionedSchema: version), configurations: store)
    let context = ModelContext(container)
    try fill(context)
    try context.save()
    return container
  }

  private func open(
    _ version: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type
  ) throws -> ModelContext {
    ModelContext(
      try ModelContainer(
        for: Schema(versionedSchema: version), migrationPlan: plan, configurations: store))
  }

  private func refusal(
    _ version: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type
  ) throws -> InstarError {
    let error = #expect(throws: SwiftDataError.self) { try open(version, plan) }
    #expect(error.map { SwiftDataError.loadIssueModelContainer ~= $0 } == true)
    let cause = try #require(error?.cause)
    #expect(cause.state == "unchanged")
    return cause
  }

  // MARK: What a lightweight stage does

  /// Two articles of the old shop, opened by the new one.
  private func migratedShop(
    _ change: (ModelContext, [ShopV1.Article]) -> Void = { _, _ in }
  ) throws -> ModelContext {
    let old = try make(ShopV1.self) { context in
      let articles = [
        ShopV1.Article(code: "a", name: "Anvil"), ShopV1.Article(code: "b", name: "Bolt"),
      ]
      articles[0].size = 7
      articles[0].obsolete = "gone"
      articles.forEach { context.insert($0) }
      change(context, articles)
    }
    defer { withExtendedLifetime(old) {} }
    return try open(ShopV2.self, Lightweight<ShopV1, ShopV2>.self)
  }

  private func articles(_ context: ModelContext) throws -> [ShopV2.Article] {
    let articles = try context.fetch(
      FetchDescriptor<ShopV2.Article>(sortBy: [SortDescriptor(\.code)]))
    try #require(articles.count == 2)
    return articles
  }

  @Test("a lightweight stage adds an optional property")
  func addOptional() throws {
    #expect(try articles(migratedShop()).map(\.note) == [nil, nil])
  }

  @Test("a lightweight stage adds a required property with a default")
  func addWithDefault() throws {
    #expect(try articles(migratedShop()).map(\.language) == ["en", "en"])
  }

  @Test("a lightweight stage removes a property, and renames one with originalName")
  func removeAndRename() throws {
    #expect(try articles(migratedShop()).map(\.title) == ["Anvil", "Bolt"])
  }

  @Test("a lightweight stage renames a relationship with originalName, and changes its delete rule")
  func relationship() throws {
    let context = try migratedShop { _, articles in
      let shelf = ShopV1.Shelf(name: "top")
      articles.forEach { $0.shelf = shelf }
    }
    #expect(try articles(context).map(\.place?.name) == ["top", "top"])
    let shelf = try #require(try context.fetch(FetchDescriptor<ShopV2.Shelf>()).first)
    context.delete(shelf)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<ShopV2.Article>()) == 0)
  }

  @Test("a lightweight stage adds an entity and an index")
  func addEntity() throws {
    let context = try migratedShop()
    context.insert(ShopV2.Agency(name: "new"))
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<ShopV2.Agency>()) == 1)
    #expect(Schema(versionedSchema: ShopV2.self).entitiesByName["Article"]?.indices == [["title"]])
  }

  @Test("a lightweight stage makes a required property optional")
  func requiredToOptional() throws {
    let context = try migratedShop()
    let articles = try articles(context)
    #expect(articles.map(\.color) == ["red", "red"])
    articles[0].color = nil
    try context.save()
  }

  @Test("a lightweight stage makes a relationship to-many, with an array as the inverse")
  func toManyBothWays() throws {
    let context = try migratedShop { _, articles in
      let label = ShopV1.Label(text: "new")
      articles.forEach { $0.label = label }
    }
    let articles = try articles(context)
    #expect(articles.map { $0.labels.map(\.text) } == [["new"], ["new"]])
    #expect(articles[0].labels.first?.articles.count == 2)
    articles[0].labels.append(ShopV2.Label(text: "second"))
    try context.save()
    let other = ModelContext(context.container)
    #expect(try self.articles(other)[0].labels.count == 2)
  }

  @Test(
    "a lightweight stage makes a relationship to-many, without an inverse or with one that stays to-one"
  )
  func toMany() throws {
    let context = try migratedShop { _, articles in
      for (article, name) in zip(articles, ["x", "y"]) {
        article.part = ShopV1.Part(name: name)
        article.maker = ShopV1.Maker(name: name)
      }
    }
    let articles = try articles(context)
    #expect(articles.map { $0.parts.map(\.name) } == [["x"], ["y"]])
    #expect(articles.map { $0.makers.map(\.name) } == [["x"], ["y"]])
    #expect(articles[1].makers.first?.article === articles[1])
  }

  @Test(
    "a relationship does not become to-many where several refer to a model that may have one owner")
  func sharedMembers() throws {
    let part = ShopV1.Part(name: "screw")
    let old = try make(ShopV1.self) { context in
      for code in ["a", "b"] {
        let article = ShopV1.Article(code: code, name: code)
        article.part = part
        context.insert(article)
      }
    }
    let cause = try refusal(ShopV2.self, Lightweight<ShopV1, ShopV2>.self)
    #expect(cause.code == .duplicateUniqueValues)
    #expect(cause.cause.contains("1 of them are referenced by several"))
    #expect(cause.next?.contains("give Part an array of Article as the inverse") == true)
    #expect(try ModelContext(old).fetchCount(FetchDescriptor<ShopV1.Article>()) == 2)
  }

  @Test(
    "a lightweight stage makes a property with a default required, and rows without a value get the default"
  )
  func requiredWithDefault() throws {
    #expect(try articles(migratedShop()).map(\.size) == [7, 40])
  }

  @Test("a lightweight stage adds uniqueness if the data has no duplicates")
  func unique() throws {
    let context = try migratedShop()
    context.insert(ShopV2.Article(code: "a", title: "again"))
    try context.save()
    #expect(try articles(context).map(\.title) == ["again", "Bolt"])
  }

  // MARK: What needs code

  private func makePeople() throws -> ModelContainer {
    try make(PeopleV1.self) { context in
      let teams = ["red", "blue"].map { PeopleV1.Team(title: $0) }
      for (name, email, age) in [
        ("Ada King", nil, "36"), ("Bob Low", "b@x", "?"), ("Ada King", "a@x", "37"),
      ] {
        let person = PeopleV1.Person(name: name, email: email, age: age)
        person.teams = age == "36" ? teams : [teams[0]]
        context.insert(person)
      }
    }
  }

  @Test(
    "a property without a default becomes required only in a stage with code, which fills the nulls first"
  )
  func required() throws {
    let old = try makePeople()
    let cause = try refusal(RequiredEmail.self, Lightweight<PeopleV1, RequiredEmail>.self)
    #expect(cause.code == .needsCustomStage)
    #expect(cause.cause.contains("Person.email becomes required"))
    #expect(
      cause.next?.contains("fromVersion: PeopleV1.self, toVersion: RequiredEmail.self") == true)

    let unfilled = try refusal(RequiredEmail.self, Unfilled.self)
    #expect(unfilled.code == .missingRequiredValues)
    #expect(unfilled.cause.contains("1 row of Person has no value"))
    #expect(unfilled.next?.contains("set it in willMigrate") == true)

    let context = try open(RequiredEmail.self, Filled.self)
    let emails = try context.fetch(
      FetchDescriptor<RequiredEmail.Person>(sortBy: [SortDescriptor(\.email)])
    ).map(\.email)
    #expect(emails == ["a@x", "b@x", "none"])
    _ = old
  }

  private enum Unfilled: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, RequiredEmail.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: PeopleV1.self, toVersion: RequiredEmail.self, willMigrate: nil,
          didMigrate: nil)
      ]
    }
  }

  private enum Filled: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, RequiredEmail.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: PeopleV1.self, toVersion: RequiredEmail.self,
          willMigrate: { context in
            let predicate = #Predicate<PeopleV1.Person> { $0.email == nil }
            for person in try context.fetch(FetchDescriptor(predicate: predicate)) {
              person.email = "none"
            }
          }, didMigrate: nil)
      ]
    }
  }

  @Test("a new uniqueness over duplicates is refused with their number, and code removes them")
  func duplicates() throws {
    let old = try makePeople()
    let cause = try refusal(UniqueName.self, Lightweight<PeopleV1, UniqueName>.self)
    #expect(cause.code == .duplicateUniqueValues)
    #expect(
      cause.cause.hasPrefix(
        "2 rows of Person have equal values of 'name', which becomes unique: rows "),
      "\(cause.cause)")
    #expect(cause.next == "remove the duplicates in willMigrate")
    let context = try open(UniqueName.self, Deduplicating.self)
    let people = try context.fetch(
      FetchDescriptor<UniqueName.Person>(sortBy: [SortDescriptor(\.name)]))
    #expect(people.map(\.name) == ["Ada King", "Bob Low"])
    _ = old
  }

  private enum Deduplicating: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, UniqueName.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: PeopleV1.self, toVersion: UniqueName.self,
          willMigrate: { context in
            var names: Set<String> = []
            for person in try context.fetch(FetchDescriptor<PeopleV1.Person>())
            where !names.insert(person.name).inserted {
              context.delete(person)
            }
          }, didMigrate: nil)
      ]
    }
  }

  @Test("a lightweight stage does not change a property's type, and two stages keep every value")
  func typeInTwoStages() throws {
    let old = try makePeople()
    let cause = try refusal(NumberAge.self, Lightweight<PeopleV1, NumberAge>.self)
    #expect(cause.code == .needsCustomStage)
    #expect(cause.cause.contains("values of Person.age must be converted from String to Int"))
    let context = try open(FinalAge.self, TwoStages.self)
    let people = try context.fetch(
      FetchDescriptor<FinalAge.Person>(sortBy: [SortDescriptor(\.fullName)]))
    #expect(people.map(\.fullName) == ["Ada King", "Ada King", "Bob Low"])
    #expect(people.map(\.age) == [36, 37, nil])
    #expect(people.map(\.teams.count).sorted() == [1, 1, 2])
    _ = old
  }

  private enum TwoStages: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [PeopleV1.self, BothAges.self, FinalAge.self]
    }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: PeopleV1.self, toVersion: BothAges.self),
        .custom(
          fromVersion: BothAges.self, toVersion: FinalAge.self,
          willMigrate: { context in
            for person in try context.fetch(FetchDescriptor<BothAges.Person>()) {
              person.ageNew = Int(person.ageOld)
            }
          }, didMigrate: nil),
      ]
    }
  }

  @Test("a property that changes its type under its own name is empty until didMigrate fills it")
  func typeInOneStage() throws {
    let old = try makePeople()
    let context = try open(NumberAge.self, OneStage.self)
    let people = try context.fetch(
      FetchDescriptor<NumberAge.Person>(sortBy: [SortDescriptor(\.age)]))
    #expect(people.map(\.age) == [-1, 36, 37])
    let unfilled = try make(PeopleV1.self, in: ModelConfiguration(isStoredInMemoryOnly: true))
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: NumberAge.self), migrationPlan: EmptyStage.self,
        configurations: unfilled.configuration)
    }
    #expect(error?.cause?.code == .missingRequiredValues)
    #expect(error?.cause?.cause.contains("'age'") == true)
    _ = old
  }

  private func make(
    _ version: any VersionedSchema.Type, in configuration: ModelConfiguration
  ) throws -> (configuration: ModelConfiguration, container: ModelContainer) {
    let container = try ModelContainer(
      for: Schema(versionedSchema: version), configurations: configuration)
    let context = ModelContext(container)
    context.insert(PeopleV1.Person(name: "a", email: nil, age: "1"))
    try context.save()
    return (configuration, container)
  }

  private enum OneStage: SchemaMigrationPlan {
    /// What `willMigrate` reads for `didMigrate`.
    private static let ages = Mutex<[PersistentIdentifier: Int]>([:])

    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, NumberAge.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: PeopleV1.self, toVersion: NumberAge.self) { context in
          for person in try context.fetch(FetchDescriptor<PeopleV1.Person>()) {
            ages.withLock { $0[person.persistentModelID] = Int(person.age) }
          }
        } didMigrate: { context in
          for person in try context.fetch(FetchDescriptor<NumberAge.Person>()) {
            person.age = ages.withLock { $0[person.persistentModelID] } ?? -1
          }
        }
      ]
    }
  }

  private enum EmptyStage: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, NumberAge.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: PeopleV1.self, toVersion: NumberAge.self, willMigrate: nil,
          didMigrate: nil)
      ]
    }
  }

  @Test("a custom stage splits a property, and gives many-to-many links a model with attributes")
  func restructure() throws {
    let old = try makePeople()
    let context = try open(Memberships.self, Splitting.self)
    let people = try context.fetch(
      FetchDescriptor<Memberships.Person>(sortBy: [SortDescriptor(\.age)]))
    #expect(people.map(\.givenName) == ["Ada", "Ada", "Bob"])
    #expect(people.map(\.familyName) == ["King", "King", "Low"])
    let teams = people.map { $0.memberships.compactMap(\.team?.title).sorted() }
    #expect(teams == [["blue", "red"], ["red"], ["red"]])
    #expect(people[0].memberships.allSatisfy { $0.role == "member" })
    _ = old
  }

  private enum Splitting: SchemaMigrationPlan {
    private static let teams = Mutex<[PersistentIdentifier: [PersistentIdentifier]]>([:])

    static var schemas: [any VersionedSchema.Type] { [PeopleV1.self, Memberships.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: PeopleV1.self, toVersion: Memberships.self) { context in
          for person in try context.fetch(FetchDescriptor<PeopleV1.Person>()) {
            let ids = person.teams.map(\.persistentModelID)
            teams.withLock { $0[person.persistentModelID] = ids }
          }
        } didMigrate: { context in
          for person in try context.fetch(FetchDescriptor<Memberships.Person>()) {
            let words = person.givenName.split(separator: " ").map(String.init)
            person.givenName = words.first ?? ""
            person.familyName = words.dropFirst().joined(separator: " ")
            for id in teams.withLock({ $0[person.persistentModelID] }) ?? [] {
              let team = context.model(for: id) as? Memberships.Team
              context.insert(Memberships.Membership(person: person, team: team, role: "member"))
            }
          }
        }
      ]
    }
  }
}
