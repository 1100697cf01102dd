import GRDB
import Instar
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarModel

@Suite("Unique values of several rows in one save")
struct UniqueValueTests {
  // MARK: A new model with the values of several rows

  @Test(
    "a new model with unique values of two rows takes the first, and the members of both",
    arguments: LinkedFormat.allCases)
  func merge(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let (one, two) = (A("a", "x", size: 1), A("b", "y", size: 2))
      context.insert(one)
      context.insert(two)
      one.devices = [A.DeviceModel("1")]
      two.devices = [A.DeviceModel("2")]
      try context.save()
      let identifier = one.persistentModelID
      let new = A("a", "y", size: 3)
      context.insert(new)
      new.devices.append(A.DeviceModel("3"))
      try context.save()
      #expect(new.persistentModelID == identifier && two.isDeleted && !context.hasChanges)
      let expected = ["1 of a", "2 of a", "3 of a", "a y 3: 1 2 3"]
      #expect(try context.accounts(A.self) == expected)
      #expect(try ModelContext(container).accounts(A.self) == expected)
      #expect(new.devices.allSatisfy { $0.account === new })
    }
    try check(format.account)
  }

  @Test(
    "merging is refused if a model would lose its required owner, and nothing is changed",
    arguments: LinkedFormat.allCases)
  func requiredOwner(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let (one, two) = (A("a", "x", size: 1), A("b", "y", size: 2))
      context.insert(one)
      context.insert(two)
      two.devices = [A.DeviceModel("2")]
      let card = A.CardModel(account: two)
      context.insert(card)
      try context.save()
      let new = A("a", "y", size: 3)
      context.insert(new)
      let error = #expect(throws: SwiftDataError.self) { try context.save() }
      #expect(
        error?.cause?.cause
          == "User 2 has its unique value, and Card 1 would lose its required 'account'")
      #expect(context.deletedModelsArray.isEmpty && two.devices.map(\.name) == ["2"])
      #expect(two.card === card)
      let unchanged = ["2 of b", "a x 1: ", "b y 2: 2"]
      #expect(try ModelContext(container).accounts(A.self) == unchanged)
      context.delete(card)
      try context.save()
      #expect(try ModelContext(container).accounts(A.self) == ["2 of a", "a y 3: 2"])
    }
    try check(format.account)
  }

  @Test("merging keeps references without an inverse, which reference the new model then")
  func referencesWithoutInverse() throws {
    let container = try ModelContainer.inMemory(Town.self, Sign.self)
    let context = ModelContext(container)
    let (one, two) = (Town("a", "x"), Town("b", "y"))
    for model in [Sign(one), Sign(two), Sign(two)] { context.insert(model) }
    try context.save()
    let changing = ModelContext(container)
    let towns = try changing.all(Town.self)
    let unsaved = Sign(try #require(towns.first { $0.name == "b" }))
    changing.insert(unsaved)
    let new = Town("a", "y")
    changing.insert(new)
    try changing.save()
    #expect(unsaved.town === new)
    for context in [changing, ModelContext(container)] {
      let signs = try context.all(Sign.self)
      #expect(signs.map { "\($0.town.name) \($0.town.code)" } == ["a y", "a y", "a y", "a y"])
      #expect(try context.all(Town.self).count == 1)
    }
  }

  @Test(
    "merging takes over members that another container has added meanwhile",
    arguments: LinkedFormat.allCases, [false, true])
  func membersAddedElsewhere(format: LinkedFormat, areAssigned: Bool) throws {
    func check<A: Account>(_ type: A.Type, isRetried: Bool) throws {
      let folder = try TemporaryFolder()
      func open() throws -> ModelContainer {
        try ModelContainer(
          for: Schema([A.self, A.DeviceModel.self, A.CardModel.self]),
          configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
      }
      let (here, there) = (try open(), try open())
      let context = ModelContext(here)
      let two = A("b", "y", size: 2)
      let free = A.DeviceModel("2")
      context.insert(A("a", "x", size: 1))
      context.insert(two)
      context.insert(free)
      two.devices = [A.DeviceModel("1")]
      try context.save()
      let others = ModelContext(there)
      let theirs = try #require(try others.all(A.self).first { $0.email == "b" })
      theirs.devices += try others.all(A.DeviceModel.self).filter { $0.name == "2" }
      theirs.devices.append(A.DeviceModel("3"))
      try others.save()

      if areAssigned { two.devices.append(A.DeviceModel("4")) }
      context.insert(A("a", "y", size: 3))
      if isRetried {
        context.beforeWrite = { throw CancellationError() }
        #expect(throws: CancellationError.self) { try context.save() }
        context.beforeWrite = nil
        // Members that were assigned stay as they are until the save.
        #expect(two.devices.map(\.name).sorted() == (areAssigned ? ["1", "4"] : ["1", "2", "3"]))
        #expect(free.account === two)
      }
      try context.save()
      let names = ["1", "2", "3"] + (areAssigned ? ["4"] : [])
      let expected = names.map { "\($0) of a" } + ["a y 3: " + names.joined(separator: " ")]
      for context in [context, ModelContext(here)] {
        #expect(try context.accounts(A.self) == expected)
      }
      try here.close()
      try there.close()
    }
    for isRetried in [false, true] { try check(format.account, isRetried: isRetried) }
  }

  @Test(
    "merging leaves members where another context has moved them meanwhile",
    arguments: LinkedFormat.allCases)
  func membersMovedElsewhere(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let two = A("b", "y", size: 2)
      for account in [A("a", "x", size: 1), two, A("c", "z", size: 3)] { context.insert(account) }
      two.devices = [A.DeviceModel("1"), A.DeviceModel("2")]
      try context.save()
      two.devices.append(A.DeviceModel("3"))
      let other = ModelContext(container)
      let device = try other.all(A.DeviceModel.self).first { $0.name == "2" }
      device?.account = try other.all(A.self).first { $0.email == "c" }
      try other.save()
      context.insert(A("a", "y", size: 4))
      try context.save()
      let expected = ["1 of a", "2 of c", "3 of a", "a y 4: 1 3", "c z 3: 2"]
      for context in [context, ModelContext(container)] {
        #expect(try context.accounts(A.self) == expected)
      }
    }
    try check(format.account)
  }

  @Test("many rows can be merged in one save, also of models in memory and of new ones")
  func manyRows() throws {
    let container = try ModelContainer.inMemory(Town.self, Sign.self)
    let context = ModelContext(container)
    let count = 5_000
    let towns = (0..<2 * count).map { Town("name \($0)", "code \($0)") }
    for town in towns { context.insert(Sign(town)) }
    try context.save()
    // Each takes the row with its name, and the row with its code gives way.
    for number in 0..<count {
      context.insert(Town("name \(number)", "code \(count + number)"))
      let other = 2 * count + 2 * number
      for (name, code) in [(other, other), (other + 1, other + 1), (other, other + 1)] {
        context.insert(Town("name \(name)", "code \(code)"))
      }
    }
    try context.save()
    #expect(towns[..<count].allSatisfy { !$0.isDeleted })
    #expect(towns[count...].allSatisfy { $0.isDeleted })
    let fresh = ModelContext(container)
    #expect(try fresh.fetchCount(FetchDescriptor<Town>()) == 2 * count)
    let signs = try fresh.all(Sign.self)
    #expect(signs.count == 2 * count)
    #expect(
      Set(signs.map { "\($0.town.name) \($0.town.code)" })
        == Set((0..<count).map { "name \($0) code \(count + $0)" }))
  }

  @Test(
    "new models of one save with each other's unique values become one row",
    arguments: LinkedFormat.allCases)
  func newModels(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      for (email, login, size) in [("a", "x", 1), ("b", "y", 2), ("a", "y", 3), ("b", "x", 4)] {
        let account = A(email, login, size: size)
        context.insert(account)
        account.devices = [A.DeviceModel("\(size)")]
      }
      try context.save()
      // The third model has values of the first two, which its row no longer has when the fourth comes.
      let expected = ["1 of a", "2 of a", "3 of a", "4 of b", "a y 3: 1 2 3", "b x 4: 4"]
      #expect(try context.accounts(A.self) == expected)
      #expect(try ModelContext(container).accounts(A.self) == expected)
    }
    try check(format.account)
  }

  @Test(
    "a new model can have the value that the row of another new model loses",
    arguments: LinkedFormat.allCases, [false, true])
  func freedByUpsert(format: LinkedFormat, isFirst: Bool) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      context.insert(A("a", "x", size: 1))
      try context.save()
      let models = [A("b", "x", size: 2), A("a", "y", size: 3)]
      for model in isFirst ? models.reversed() : models { context.insert(model) }
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.accounts(A.self) == ["a y 3: ", "b x 2: "])
      }
    }
    try check(format.account)
  }

  // MARK: Texts

  @Test(
    "texts that differ in their bytes only are different values", arguments: LinkedFormat.allCases)
  func composition(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      context.insert(A("e\u{301}", "1", size: 1))
      context.insert(A("\u{e9}", "2", size: 2))
      try context.save()
      #expect(try ModelContext(container).all(A.self).map(\.size).sorted() == [1, 2])
      let first = try #require(try context.all(A.self).first { $0.size == 1 })
      first.login = "e\u{301}"
      try context.save()
      first.login = "\u{e9}"
      #expect(context.hasChanges)
      try context.save()
      let logins = try ModelContext(container).all(A.self).map { Array($0.login.utf8) }
      #expect(logins.contains([0xC3, 0xA9]))
    }
    try check(format.account)
  }

  // MARK: Order

  /// Changes the emails of accounts in the order of the array, in one save.
  private func change<A: Account>(
    _ type: A.Type, from old: [String], to new: [String]
  ) throws -> [String] {
    let container = try A.container()
    let context = ModelContext(container)
    let accounts = old.enumerated().map { A($1, "\($0)", size: $0) }
    for account in accounts { context.insert(account) }
    try context.save()
    for (account, email) in zip(accounts, new) { account.email = email }
    // Once for each row, however often SQLite refuses it.
    let count = Mutex(0)
    context.beforeWrite = { count.withLock { $0 += 1 } }
    try context.save()
    let changed = zip(old, new).filter { $0 != $1 }.count
    let written = count.withLock { $0 }
    #expect(written == changed)
    #expect(accounts.map(\.email) == new)
    return try ModelContext(container).all(A.self).sorted { $0.size < $1.size }.map(\.email)
  }

  @Test(
    "changed rows can pass their values on, or exchange them", arguments: LinkedFormat.allCases,
    [
      "bacde", "bcade", "cabde", "bcdef", "zabcd", "badce", "edcba", "bcdea", "eabcd", "dfabc",
    ])
  func passing(format: LinkedFormat, new: String) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let new = new.map(String.init)
      #expect(try change(A.self, from: ["a", "b", "c", "d", "e"], to: new) == new)
    }
    try check(format.account)
  }

  @Test(
    "a chain or a cycle of many rows can pass their values on", arguments: LinkedFormat.allCases)
  func longChain(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let old = (0..<5_000).map(String.init)
      for last in [5_000, 0] {
        let new = (1..<5_000).map(String.init) + ["\(last)"]
        #expect(try change(A.self, from: old, to: new) == new)
      }
    }
    try check(format.account)
  }

  @Test(
    "rows can exchange a value that is unique with a reference", arguments: LinkedFormat.allCases)
  func exchangeInGroup(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let owner = O("x")
      let tickets = [1, 2].map { O.TicketModel($0, owner: owner, text: "\($0)") }
      for ticket in tickets { context.insert(ticket) }
      try context.save()
      (tickets[0].number, tickets[1].number) = (2, 1)
      try context.save()
      let found = try container.read {
        try $0.all(O.TicketModel.self).map { "\($0.number) \($0.text)" }
      }
      #expect(found.sorted() == ["1 2", "2 1"])
    }
    try check(format.owner)
  }

  @Test(
    "a changed row can have the value that a new model's row loses",
    arguments: LinkedFormat.allCases)
  func freedForChangedRow(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let other = A("b", "y", size: 2)
      context.insert(A("a", "x", size: 1))
      context.insert(other)
      try context.save()
      other.email = "a"
      context.insert(A("c", "x", size: 3))
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.accounts(A.self) == ["a y 2: ", "c x 3: "])
      }
    }
    try check(format.account)
  }

  @Test(
    "values pass over a deleted row and a new one in the same save",
    arguments: LinkedFormat.allCases, [false, true])
  func deletionAndInsertion(format: LinkedFormat, deletesLast: Bool) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let accounts = [A("a", "x", size: 1), A("b", "y", size: 2), A("c", "z", size: 3)]
      for account in accounts { context.insert(account) }
      try context.save()
      if !deletesLast { context.delete(accounts[0]) }
      accounts[1].email = "c"
      accounts[2].email = "a"
      context.insert(A("b", "x", size: 4))
      if deletesLast { context.delete(accounts[0]) }
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.accounts(A.self) == ["a z 3: ", "b x 4: ", "c y 2: "])
      }
    }
    try check(format.account)
  }

  @Test(
    "a new model takes the changed row with its value that is unique with another new model",
    arguments: LinkedFormat.allCases)
  func uniqueWithNewModel(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let old = O("old")
      let ticket = O.TicketModel(1, owner: old, text: "changed")
      context.insert(ticket)
      try context.save()
      let new = O("new")
      ticket.owner = new
      context.insert(O.TicketModel(1, owner: new, text: "new"))
      try context.save()
      let found = try container.read {
        try $0.all(O.TicketModel.self).map { "\($0.number) \($0.text) \($0.owner.name)" }
      }
      #expect(found == ["1 new new"])
    }
    try check(format.owner)
  }

  @Test(
    "rows can exchange the references that are unique with a number",
    arguments: LinkedFormat.allCases)
  func exchangedOwners(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let owners = ["x", "y", "z"].map { O($0) }
      let tickets = owners.map { O.TicketModel(1, owner: $0, text: $0.name) }
      for ticket in tickets { context.insert(ticket) }
      try context.save()
      for (index, ticket) in tickets.enumerated() { ticket.owner = owners[(index + 1) % 3] }
      try context.save()
      let found = try container.read {
        try $0.all(O.TicketModel.self).map { "\($0.text) of \($0.owner.name)" }
      }
      #expect(found.sorted() == ["x of y", "y of z", "z of x"])
    }
    try check(format.owner)
  }

  @Test(
    "the error about values that are unique together names them and the row that has them",
    arguments: LinkedFormat.allCases)
  func takenTogether(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let context = ModelContext(try O.container())
      let owner = O("x")
      let tickets = [1, 2].map { O.TicketModel($0, owner: owner, text: "") }
      for ticket in tickets { context.insert(ticket) }
      try context.save()
      tickets[1].number = 1
      let error = #expect(throws: SwiftDataError.self) { try context.save() }
      let title = "\(tickets[0].persistentModelID.entityName) 1"
      #expect(
        error?.cause?.cause.hasSuffix(" are unique together, and \(title) has the same values")
          == true, "\(String(describing: error))")
      #expect(error?.cause?.cause.contains("'number'") == true)
    }
    try check(format.owner)
  }

  // MARK: Failed saves

  @Test(
    "after a failed save all models are as before, also those that would have been merged",
    arguments: LinkedFormat.allCases)
  func failedMerge(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
      let context = ModelContext(container)
      let accounts = [A("a", "x", size: 1), A("b", "y", size: 2), A("c", "z", size: 3)]
      for (index, account) in accounts.enumerated() {
        context.insert(account)
        account.devices = [A.DeviceModel("\(index + 1)")]
      }
      try context.save()
      let new = A("b", "x", size: 4)
      context.insert(new)
      new.devices = [A.DeviceModel("4")]
      accounts[2].email = "a"
      accounts[0].email = "d"
      context.insert(A("e", "v", size: 5))
      let others = ModelContext(container)
      let fourth = A("f", "w", size: 6)
      others.insert(fourth)
      try others.save()
      let changed = try #require(try context.all(A.self).first { $0.login == "w" })
      // No model of the save frees this value.
      changed.login = "z"
      func inMemory() -> [String] {
        (accounts + [new, changed]).map { account in
          "\(account.email) \(account.login): "
            + account.devices.map { "\($0.name) of \($0.account?.email ?? "nil")" }.joined()
        }
      }
      let before = inMemory()
      for _ in 1...2 {
        let error = #expect(throws: SwiftDataError.self) { try context.save() }
        #expect(error?.cause?.cause.hasPrefix("'login' is unique, and ") == true)
        #expect(inMemory() == before)
        #expect(context.deletedModelsArray.isEmpty && context.insertedModelsArray.count == 3)
        #expect(!accounts.contains { $0.isDeleted })
      }
      new.login = "u"
      changed.login = "w"
      try context.save()
      let expected = [
        "1 of d", "2 of b", "3 of a", "4 of b", "a z 3: 3", "b u 4: 2 4", "d x 1: 1", "e v 5: ",
        "f w 6: ",
      ]
      #expect(try context.accounts(A.self) == expected)
      #expect(try ModelContext(container).accounts(A.self) == expected)
    }
    try check(format.account)
  }

  // MARK: Keys

  @Test("a new model keeps the key of the row with its unique value, and its own key stays free")
  func integerKey() throws {
    let container = try ModelContainer.inMemory(Post.self)
    let context = ModelContext(container)
    context.insert(Post(id: 1, name: "a"))
    try context.save()
    let posts = [Post(id: 7, name: "a"), Post(id: 7, name: "b"), Post(id: 1, name: "c")]
    for post in posts { context.insert(post) }
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Post.self).map { "\($0.id) \($0.name)" }.sorted() == ["1 c", "7 b"])
    }
  }

  @Test("a new model replaces the rows with its other unique values in a table without rowid")
  func naturalKey() throws {
    let container = try ModelContainer.inMemory(Stop.self, Sign.self, Town.self)
    let context = ModelContext(container)
    for (code, name) in [("a", "x"), ("b", "y"), ("c", "z")] { context.insert(Stop(code, name)) }
    try context.save()
    for (code, name) in [("d", "x"), ("b", "z"), ("e", "v"), ("f", "v")] {
      context.insert(Stop(code, name))
    }
    try context.save()
    for context in [context, ModelContext(container)] {
      let found = try context.all(Stop.self).map { "\($0.code) \($0.name)" }
      #expect(found.sorted() == ["b z", "d x", "f v"])
    }
    let stops = try context.all(Stop.self)
    for stop in stops { stop.name = ["b": "x", "d": "v", "f": "z"][stop.code] ?? "" }
    try context.save()
    let found = try container.read { try $0.all(Stop.self).map { "\($0.code) \($0.name)" } }
    #expect(found.sorted() == ["b x", "d v", "f z"])
  }

  @Test("rows of a table with rowid can exchange their primary keys")
  func textKey() throws {
    let container = try ModelContainer.inMemory(Code.self)
    let context = ModelContext(container)
    let codes = ["a", "b", "c"].map { Code($0, size: 0) }
    for code in codes { context.insert(code) }
    try context.save()
    for (code, text) in zip(codes, ["b", "c", "a"]) {
      code.size = code.text == "a" ? 1 : 2
      code.text = text
    }
    try context.save()
    let found = try container.read { try $0.all(Code.self).map { "\($0.text) \($0.size)" } }
    #expect(found.sorted() == ["a 2", "b 1", "c 2"])
  }

  // MARK: Constraints and files

  @Test("rows exchange required values within the checks of their table", arguments: [2, 3])
  func checkedValues(count: Int) throws {
    let container = try ModelContainer.inMemory(Rank.self)
    let context = ModelContext(container)
    let ranks = (0..<count).map { Rank(number: $0, letter: ["a", "b", "c"][$0]) }
    for rank in ranks { context.insert(rank) }
    try context.save()
    for (index, rank) in ranks.enumerated() { rank.number = (index + 1) % count }
    try context.save()
    let found = try container.read { try $0.all(Rank.self).sorted { $0.letter < $1.letter } }
    #expect(found.map(\.number) == (0..<count).map { ($0 + 1) % count })
  }

  @Test("if no value in between is allowed, the error says so, and nothing is changed")
  func noValueBetween() throws {
    let container = try ModelContainer.inMemory(Rank.self)
    let context = ModelContext(container)
    let ranks = [Rank(number: 1, letter: "a"), Rank(number: 2, letter: "b")]
    for rank in ranks { context.insert(rank) }
    try context.save()
    (ranks[0].letter, ranks[1].letter) = ("b", "a")
    let error = #expect(throws: SwiftDataError.self) { try context.save() }
    #expect(
      error?.cause?.cause
        == "the model exchanges unique values with other models, and the constraints or triggers of table rank allow no value in between: rank(letter)"
    )
    #expect(ranks.map(\.letter) == ["b", "a"])
    let found = try container.read { try $0.all(Rank.self).map { "\($0.number) \($0.letter)" } }
    #expect(found.sorted() == ["1 a", "2 b"])
    ranks[0].letter = "c"
    try context.save()
    ranks[0].letter = "b"
    try context.save()
    let saved = try container.read { try $0.all(Rank.self).map { "\($0.number) \($0.letter)" } }
    #expect(saved.sorted() == ["1 b", "2 a"])
  }

  @Test("a row that SQLite refuses at first leaves no file with its large value")
  func largeValues() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Schema([Photo.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("Photos.store"))))
    let context = ModelContext(container)
    let photos = ["a", "b", "c"].map { Photo($0, Data(repeating: 1, count: 200_000)) }
    for photo in photos { context.insert(photo) }
    try context.save()
    for (photo, name) in zip(photos, ["b", "c", "a"]) {
      photo.name = name
      photo.image = Data(repeating: 2, count: 200_000)
    }
    try context.save()
    let files = try FileManager.default.contentsOfDirectory(
      atPath: folder.path(".Photos_SUPPORT/_EXTERNAL_DATA"))
    #expect(files.count == 3)
    let images = try container.read { try $0.all(Photo.self).map { $0.image.first } }
    #expect(images == [2, 2, 2])
    try container.close()
  }

  // MARK: History and triggers

  @Test("the history of a save has one change for each row")
  func history() throws {
    typealias User = CoreDataAccounts.User
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Schema([User.self, CoreDataAccounts.Device.self, CoreDataAccounts.Card.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    let context = ModelContext(container)
    let users = ["a", "b", "c", "d", "e"].enumerated().map { User($1, "\($0)", size: $0) }
    for user in users { context.insert(user) }
    try context.save()
    // Rows that exchange values, a changed row that a new model takes, and new models with one row.
    (users[0].email, users[1].email) = ("b", "a")
    users[2].size = 10
    context.insert(User("f", "2", size: 11))
    context.insert(User("g", "7", size: 12))
    context.insert(User("g", "8", size: 13))
    // A new model with the values of two rows.
    context.insert(User("d", "4", size: 14))
    try context.save()
    let last = try #require(
      try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last)
    let kinds = last.changes.map { change in
      let key = change.changedPersistentIdentifier.id.key
      return switch change {
      case .delete: "\(key) deleted"
      case .insert: "\(key) inserted"
      case .update: "\(key) updated"
      }
    }
    // The email is the first unique value, so the row with it stays.
    let expected = [
      "1 updated", "2 updated", "3 updated", "4 updated", "5 deleted", "6 inserted",
    ]
    #expect(kinds.sorted() == expected)
    try container.close()
  }

  @Test("a moved row is written once, or twice if it takes a value of a deleted row")
  func triggers() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.db")
    func container() throws -> ModelContainer {
      try ModelContainer(
        for: Schema([Sprig.self]), configurations: ModelConfiguration(url: URL(filePath: path)))
    }
    let filling = try container()
    let context = ModelContext(filling)
    let root = Sprig("root")
    context.insert(root)
    for number in 1...3 {
      let middle = Sprig("middle \(number)")
      root.children.append(middle)
      middle.children = [Sprig("leaf \(number)")]
    }
    try context.save()
    try filling.close()
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      try db.execute(
        sql: """
          CREATE TRIGGER count AFTER UPDATE ON sprig
          BEGIN UPDATE sprig SET updates = updates + 1 WHERE rowid = new.rowid; END
          """)
    }
    let counting = try container()
    let changing = ModelContext(counting)
    for sprig in try changing.all(Sprig.self) {
      if sprig.name.hasPrefix("middle") { changing.delete(sprig) }
      guard sprig.name.hasPrefix("leaf") else { continue }
      sprig.parent = try changing.all(Sprig.self).first { $0.name == "root" }
      if sprig.name == "leaf 2" { sprig.name = "other" }
      if sprig.name == "leaf 3" { sprig.name = "middle 3" }
    }
    try changing.save()
    let found = try counting.read { try $0.all(Sprig.self).map { "\($0.name) \($0.updates)" } }
    #expect(found.sorted() == ["leaf 1 1", "middle 3 2", "other 1", "root 0"])
    try counting.close()
  }
}

extension UniqueValueTests {
  @Test("a trigger before a row that SQLite refuses at first runs once, also with ON CONFLICT FAIL")
  func conflictFail() throws {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    try queue.write { db in
      try db.execute(
        sql: """
          CREATE TABLE post (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE ON CONFLICT FAIL);
          CREATE TABLE log (line TEXT);
          CREATE TRIGGER changed BEFORE UPDATE ON post
          BEGIN INSERT INTO log VALUES (old.name || ' ' || new.name); END;
          CREATE TRIGGER added BEFORE INSERT ON post BEGIN INSERT INTO log VALUES (new.name); END;
          INSERT INTO post VALUES (1, 'a'), (2, 'b'), (3, 'c');
          DELETE FROM log;
          """)
    }
    let container = try ModelContainer(
      for: Schema([Post.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.db"))))
    let context = ModelContext(container)
    let posts = try context.all(Post.self).sorted { $0.id < $1.id }
    for (post, name) in zip(posts, ["b", "c", "d"]) { post.name = name }
    context.insert(Post(id: 4, name: "a"))
    try context.save()
    let lines = try queue.read { try String.fetchAll($0, sql: "SELECT line FROM log") }
    #expect(lines == ["c d", "b c", "a b", "a"])
    try container.close()
    try queue.close()
  }
}

@Suite("Unique values in tables with triggers and foreign keys")
struct UniqueValuesWithTriggersTests {
  private let folder: TemporaryFolder
  private let container: ModelContainer

  init() throws {
    folder = try TemporaryFolder()
    container = try ModelContainer(
      for: Schema([Town.self, Sign.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.db"))))
    let context = ModelContext(container)
    context.insert(Town("a", "1"))
    context.insert(Town("b", "2"))
    try context.save()
  }

  private func execute(_ sql: String) throws {
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  private func towns() throws -> [String] {
    try container.read { try $0.all(Town.self).map { "\($0.name) \($0.code)" } }.sorted()
  }

  /// Exchanges the names of the towns.
  private func exchange() throws {
    let context = ModelContext(container)
    for town in try context.all(Town.self) { town.name = town.name == "a" ? "b" : "a" }
    try context.save()
  }

  @Test("a trigger that keeps a row from being deleted ends the save with an error")
  func keptRow() throws {
    try execute(
      "CREATE TRIGGER kept BEFORE DELETE ON town BEGIN SELECT RAISE(IGNORE); END")
    let context = ModelContext(container)
    context.insert(Town("a", "2"))
    let error = #expect(throws: (any Error).self) { try context.save() }
    #expect(
      error.map { "\($0)" }?.contains("a trigger of table town keeps the row from being deleted")
        == true)
    #expect(try towns() == ["a 1", "b 2"])
  }

  @Test("a trigger that ignores each value in between ends the save with an error")
  func ignoredValue() throws {
    try execute(
      """
      CREATE TRIGGER short BEFORE UPDATE ON town WHEN NEW.name NOT IN ('a', 'b')
      BEGIN SELECT RAISE(IGNORE); END
      """)
    let error = #expect(throws: (any Error).self) { try exchange() }
    #expect(error.map { "\($0)" }?.contains("allow no value in between") == true)
    #expect(try towns() == ["a 1", "b 2"])
  }

  @Test("rows that reference an exchanged value follow it")
  func cascade() throws {
    try execute(
      """
      CREATE TABLE road (town TEXT REFERENCES town (name) ON UPDATE CASCADE);
      INSERT INTO road VALUES ('a'), ('b');
      """)
    try exchange()
    #expect(try towns() == ["a 2", "b 1"])
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    let roads = try queue.read {
      try String.fetchAll($0, sql: "SELECT town FROM road ORDER BY rowid")
    }
    try queue.close()
    #expect(roads == ["b", "a"])
  }
}

@Table("town")
@Model
final class Town {
  @Attribute(.unique) var name: String
  @Attribute(.unique) var code: String
  init(_ name: String, _ code: String) {
    self.name = name
    self.code = code
  }
}

@Table("sign")
@Model
final class Sign {
  @Relationship(.withoutInverse) var town: Town
  init(_ town: Town) { self.town = town }
}

@Table("post")
@Model
private final class Post {
  @Column(.primaryKey) var id: Int
  @Attribute(.unique) var name: String
  init(id: Int, name: String) {
    self.id = id
    self.name = name
  }
}

@Table("stop", .withoutRowID)
@Model
private final class Stop {
  @Column(.primaryKey) var code: String
  @Attribute(.unique) var name: String
  init(_ code: String, _ name: String) {
    self.code = code
    self.name = name
  }
}

@Table("code")
@Model
private final class Code {
  @Column(.primaryKey) var text: String
  var size: Int
  init(_ text: String, size: Int) {
    self.text = text
    self.size = size
  }
}

@Table("rank", .strict, .check("number BETWEEN 0 AND 3"), .check("letter IN ('a', 'b', 'c', 'd')"))
@Model
private final class Rank {
  @Attribute(.unique) var number: Int
  @Attribute(.unique) var letter: String
  init(number: Int, letter: String) {
    self.number = number
    self.letter = letter
  }
}

@Model
private final class Photo {
  @Attribute(.unique) var name: String
  @Attribute(.externalStorage) var image: Data
  init(_ name: String, _ image: Data) {
    self.name = name
    self.image = image
  }
}
