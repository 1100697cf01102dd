import Foundation
import InstarLinux
import InstarSchema
import InstarSystemd
import InstarTestSupport
import Testing

@Suite("Journal, service manager and installation")
struct JournalTests {
  @Test(
    "an entry with newlines in a value is taken; a field that the journal would drop is an error")
  func fields() throws {
    try Journal.send(fields: [("MESSAGE", "one\ntwo"), ("INSTAR_RUN", "r"), ("PRIORITY", "7")])
    for name in ["", "_PID", "lower", "1ST", "A-B", String(repeating: "A", count: 65)] {
      #expect(try instarError { try Journal.send(fields: [(name, "x")]) }.code == .internalError)
    }
  }

  @Test("without a service manager nothing is told, and nothing is wanted")
  func noManager() {
    ServiceNotification.send(.ready, .status("two\nlines"))
    #expect(ServiceNotification.watchdogInterval == nil)
    #expect(!Journal.receivesStandardError)
  }

  @Test("what building a plugin needs and is missing is named")
  func missingSDK() throws {
    let installation = Installation(
      keeper: "/k", worker: "/w", library: "/nonexistent/libInstar.so", swiftRuntimeFolder: nil,
      modulesFolder: "/nonexistent/Modules", macroExecutable: "/nonexistent/InstarMacros-tool")
    let error = try instarError { try installation.requireSDK() }
    #expect(error.code == .incompleteInstallation)
    #expect(
      error.cause
        == "missing: '/nonexistent/Modules', '/nonexistent/InstarMacros-tool', '/nonexistent/libInstar.so'"
    )
  }

  @Test("the state folder of a user is an absolute path")
  func stateFolder() {
    #expect(Installation.defaultStateFolder.hasPrefix("/"))
  }
}
