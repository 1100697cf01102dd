import InstarSchema
import InstarWire
import Testing

@Suite("What to do about a store that another process has locked")
struct LockAdviceTests {
  private func advice(_ holders: [(Int32, String)]) -> String {
    ProbeReport.adviceOnLock(
      of: "/srv/a.store", holders.map { ProbeReport.Holder(pid: $0.0, command: $0.1) })
  }

  @Test("the processes to stop are named, or the command that shows them")
  func apps() {
    #expect(
      advice([(4211, "python3")]) == "stop process 4211 (python3) or wait until it closes the store"
    )
    #expect(
      advice([(1, "a"), (2, "b")])
        == "stop these processes or wait until they close the store: 1 (a), 2 (b)")
    #expect(
      advice([])
        == "to see which process it is, run as root: instarctl probe '/srv/a.store'; "
        + InstarError.adviceOnLock)
  }

  @Test("nobody is told to stop a run of Instar, or an app that waits for its end")
  func keepers() {
    let keeper: (Int32, String) = (21570, "instar-keeper")
    for holders in [[keeper], [(13, "app"), keeper]] {
      #expect(
        advice(holders)
          == "wait until the run of Instar that works on the store ends: process 21570 (instar-keeper)"
      )
    }
  }
}
