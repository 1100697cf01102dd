import Instar
import InstarTestSupport
import Synchronization
import Testing

/// Random changes of two unique values, compared after each save with what a dictionary says.
@Suite("Random changes of unique values")
struct RandomUpsertsTests {
  /// The accounts of a store by number, and the devices by name.
  struct World {
    struct Account {
      var email: String
      var login: String
      var size: Int
    }

    var accounts: [Int: Account] = [:]
    var owners: [String: Int] = [:]

    var lines: [String] {
      let accounts = accounts.map { number, account in
        let devices = owners.filter { $0.value == number }.keys.sorted()
        return "\(account.email) \(account.login) \(account.size): "
          + devices.joined(separator: " ")
      }
      let devices = owners.map { "\($0) of \(self.accounts[$1]?.email ?? "nil")" }
      return (accounts + devices).sorted()
    }

    /// Gives an account to the row that has one of its unique values, and deletes the other row that has one.
    mutating func insert(_ account: Account, number: Int, devices: [String]) {
      let rows = accounts.filter { $1.email == account.email || $1.login == account.login }.keys
      for row in rows { accounts[row] = nil }
      for (device, owner) in owners where rows.contains(owner) { owners[device] = number }
      for device in devices { owners[device] = number }
      accounts[number] = account
    }
  }

  private struct Play<A: Account> {
    let container: ModelContainer
    var context: ModelContext
    var generator: SeededGenerator
    var world = World()
    var lastNumber = 0
    var log: [String] = []

    init(seed: UInt64) throws {
      container = try A.container()
      context = ModelContext(container)
      generator = SeededGenerator(seed: seed)
    }

    private mutating func chance(_ percent: Int) -> Bool {
      Int.random(in: 0..<100, using: &generator) < percent
    }

    private mutating func text(_ prefix: String) -> String {
      "\(prefix)\(Int.random(in: 0..<6, using: &generator))"
    }

    private mutating func newNumber() -> Int {
      lastNumber += 1
      return lastNumber
    }

    /// Some deletions, changes and new accounts, and their save.
    mutating func step() throws {
      if chance(20) { context = ModelContext(container) }
      log.append("save \(world.lines)")
      let models = try context.all(A.self)
      var living: [Int: A] = [:]
      for (number, account) in world.accounts {
        living[number] = models.first { $0.email == account.email }
      }
      var devices: [String: A.DeviceModel] = [:]
      for device in try context.all(A.DeviceModel.self) { devices[device.name] = device }
      // The store applies deletions first, then changes, then new accounts. The calls may come in any order.
      let deleted = living.keys.sorted().filter { _ in chance(15) }
      let deletesFirst = chance(50)
      if deletesFirst { delete(deleted, living) }
      let survivors = living.keys.sorted().filter { !deleted.contains($0) }
      var after = world
      for number in deleted { after.accounts[number] = nil }
      permute(survivors, living, &after)
      var moved: [String: Int] = [:]
      insert(devices, &after, &moved)
      if !deletesFirst { delete(deleted, living) }
      for device in after.owners.keys where after.owners[device].map(deleted.contains) == true {
        after.owners[device] = nil
      }
      if chance(30) { try failOnce() }
      try context.save()
      world = after
      try check("in memory", context)
      try container.read { try check("in a fresh context", $0) }
    }

    /// Lets a save fail at a random row, which must leave the accounts in memory as they are.
    private mutating func failOnce() throws {
      let row = Int.random(in: 1...8, using: &generator)
      log.append("  fail row \(row)")
      let count = Mutex(0)
      context.beforeWrite = {
        let number = count.withLock { count in
          count += 1
          return count
        }
        if number == row { throw CancellationError() }
      }
      defer { context.beforeWrite = nil }
      let models = context.insertedModelsArray + context.changedModelsArray
      let accounts = models.compactMap { $0 as? A }
      func lines() -> [String] {
        accounts.map { account in
          "\(account.email) \(account.login): " + account.devices.map(\.name).joined(separator: " ")
        }
      }
      let before = lines()
      do {
        try context.save()
      } catch is CancellationError {
        let inserted = context.insertedModelsArray.map { ObjectIdentifier($0) }
        guard lines() == before, !accounts.contains(where: \.isDeleted),
          inserted == models.prefix(inserted.count).map({ ObjectIdentifier($0) })
        else {
          throw RandomLinksTests.Mismatch(
            description: "after a failed save: found \(lines()), expected \(before)")
        }
      }
    }

    private mutating func delete(_ numbers: [Int], _ living: [Int: A]) {
      for number in numbers {
        log.append("  delete \(number)")
        if let model = living[number] { context.delete(model) }
      }
    }

    /// Exchanges unique values, some of them for new ones.
    private mutating func permute(_ numbers: [Int], _ living: [Int: A], _ after: inout World) {
      for path in [\World.Account.email, \World.Account.login] where chance(60) {
        let prefix = path == \.email ? "e" : "l"
        let chosen = numbers.filter { _ in chance(60) }
        let kept = Set(
          numbers.filter { !chosen.contains($0) }.compactMap { after.accounts[$0]?[keyPath: path] })
        let free = (0..<6).map { "\(prefix)\($0)" }.filter { !kept.contains($0) }
          .shuffled(using: &generator)
        for (number, value) in zip(chosen, free) {
          log.append("  \(number): \(value)")
          after.accounts[number]?[keyPath: path] = value
          if path == \.email {
            living[number]?.email = value
          } else {
            living[number]?.login = value
          }
        }
      }
    }

    private mutating func insert(
      _ devices: [String: A.DeviceModel], _ after: inout World, _ moved: inout [String: Int]
    ) {
      for _ in 0..<Int.random(in: 0..<4, using: &generator) {
        let number = newNumber()
        let account = World.Account(email: text("e"), login: text("l"), size: number)
        log.append("  insert \(number): \(account.email) \(account.login)")
        let model = A(account.email, account.login, size: number)
        context.insert(model)
        var own: [String] = []
        if chance(50) {
          own.append("d\(number)")
          model.devices.append(A.DeviceModel("d\(number)"))
        }
        let others = devices.keys.sorted().filter { moved[$0] == nil }
        if chance(30), let name = others.randomElement(using: &generator),
          let device = devices[name]
        {
          log.append("    with \(name)")
          moved[name] = number
          own.append(name)
          device.account = model
        }
        after.insert(account, number: number, devices: own)
      }
    }

    private func check(_ place: String, _ context: ModelContext) throws {
      let found = try context.accounts(A.self)
      if found != world.lines {
        throw RandomLinksTests.Mismatch(
          description: "\(place): found \(found), expected \(world.lines)")
      }
      if context.hasChanges {
        throw RandomLinksTests.Mismatch(description: "\(place): there are changes")
      }
    }
  }

  /// To repeat a failure, set `INSTAR_TEST_SEED` to the seed that it prints.
  @Test(
    "after each save memory and a fresh context have the same accounts",
    arguments: LinkedFormat.allCases)
  func random(format: LinkedFormat) throws {
    let fixed = ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    func play<A: Account>(_ type: A.Type) throws {
      for _ in 0..<(fixed == nil ? 20 : 1) {
        let seed = fixed ?? UInt64.random(in: 0 ... .max)
        var play = try Play<A>(seed: seed)
        do {
          for _ in 0..<50 { try play.step() }
        } catch {
          Issue.record("seed \(seed): \(error)\n\(play.log.suffix(12).joined(separator: "\n"))")
          return
        }
      }
    }
    try play(format.account)
  }
}
