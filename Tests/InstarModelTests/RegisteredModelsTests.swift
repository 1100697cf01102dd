import Instar
import InstarTestSupport
import Testing

@testable import InstarModel

@Suite("The registry of living models")
struct RegisteredModelsTests {
  private func storage(_ key: Int64) -> ModelStorage {
    let storage = ModelStorage(Library.Tag._modelDescriptor)
    storage.setRow(key)
    return storage
  }

  @Test(
    "the registry of living models finds what a dictionary finds, for keys with any distance between them",
    arguments: [1, 8, 1_024, 1 << 40, -7])
  func likeDictionary(distance: Int64) {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    var registered = RegisteredModels()
    var expected: [Int64: ModelStorage] = [:]
    for step in 0..<20_000 {
      let key = Int64.random(in: 0..<300, using: &generator) &* distance
      if Bool.random(using: &generator) {
        let new = storage(key)
        registered.insert(new)
        expected[key] = new
      } else if let known = expected.removeValue(forKey: key) {
        // Another storage of the key is not the registered one.
        registered.remove(storage(key))
        #expect(registered.storage(key) === known, "seed \(seed), step \(step)")
        registered.remove(known)
      }
      #expect(registered.storage(key) === expected[key], "seed \(seed), step \(step)")
      #expect(registered.count == expected.count, "seed \(seed), step \(step)")
    }
    #expect(Set(registered.keys) == Set(expected.keys), "seed \(seed)")
    #expect(
      Set(registered.storages.map { ObjectIdentifier($0) })
        == Set(expected.values.map { ObjectIdentifier($0) }), "seed \(seed)")
  }
}
