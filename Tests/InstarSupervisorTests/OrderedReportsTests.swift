import Synchronization
import Testing

@testable import InstarSupervisor

@Suite("Reports of stores that are read in parts")
struct OrderedReportsTests {
  @Test("reports are passed on in the order of the stores, each as soon as that allows")
  func order() {
    let passedOn = Mutex<[String]>([])
    let reports = OrderedReports()
    func add(_ store: String, _ part: Int) {
      reports.add({ passedOn.withLock { $0.append(store) } }, of: part)
    }
    func taken() -> [String] {
      passedOn.withLock { stores in
        defer { stores = [] }
        return stores
      }
    }
    add("c1", 2)
    add("b1", 1)
    add("a1", 0)
    #expect(taken() == ["a1"])
    reports.end(2)
    add("b2", 1)
    #expect(taken().isEmpty)
    reports.end(0)
    #expect(taken() == ["b1", "b2"])
    add("b3", 1)
    #expect(taken() == ["b3"])
    reports.end(1)
    #expect(taken() == ["c1"])
  }
}
