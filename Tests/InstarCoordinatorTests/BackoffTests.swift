import Testing

@testable import InstarCoordinator

@Suite("The time until a host tries etcd again")
struct BackoffTests {
  @Test(
    "the time until a host tries etcd again doubles with each failure up to the longest, and a success ends it"
  )
  func doubles() {
    let now = ContinuousClock.now
    var backoff = Backoff()
    #expect(backoff.isDue(now))
    for longest in [2, 4, 8, 15, 15, 15] {
      backoff.fail(now, longest: .seconds(15))
      #expect(!backoff.isDue(now + .seconds(longest) / 2 - .milliseconds(1)))
      #expect(backoff.isDue(now + .seconds(longest)))
    }
    backoff.succeed()
    #expect(backoff.isDue(now))
  }

  @Test("hosts that failed together try again at different moments")
  func spreads() {
    let now = ContinuousClock.now
    var hosts = [Backoff](repeating: Backoff(), count: 100)
    for host in hosts.indices { hosts[host].fail(now, longest: .seconds(1000)) }
    let due = hosts.count { $0.isDue(now + .milliseconds(1500)) }
    #expect((1..<100).contains(due))
  }
}
