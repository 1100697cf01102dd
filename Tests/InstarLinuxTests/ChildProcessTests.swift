import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("ChildProcess")
struct ChildProcessTests {
  func shell(
    _ script: String, environment: [String: String]? = nil, channel: Int32? = nil,
    output: ChildProcess.Output = .captured(limitBytes: 10_000)
  ) throws -> ChildProcess {
    try ChildProcess.start(
      executable: "/bin/bash", arguments: ["-c", script], environment: environment,
      channel: channel, output: output)
  }

  @Test("exit status and signal are told apart, and read as a sentence")
  func termination() throws {
    let exited = try shell("exit 3").wait()
    #expect(exited == .exited(3))
    #expect(exited?.description == "exited with status 3")
    let signaled = try shell("kill -ILL $$").wait()
    #expect(signaled == .signaled(SIGILL))
    #expect(signaled?.description == "was killed by SIGILL")
  }

  @Test("output of both streams is complete once the child was waited for")
  func output() throws {
    let child = try shell("echo one; echo two >&2; printf three")
    #expect(try child.wait() == .exited(0))
    #expect(child.capturedOutput == "one\ntwo\nthree")
  }

  @Test("a flood never blocks the child, and only its beginning and its end are kept")
  func flood() throws {
    let child = try shell("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    #expect(try child.wait(deadline: soon()) == .exited(0))
    #expect(child.capturedOutput.hasPrefix("begin\nxxx"))
    #expect(child.capturedOutput.hasSuffix("xxx\nend\n"))
    #expect(child.capturedOutput.contains("bytes left out"))
    #expect(child.capturedOutput.utf8.count < 10_100)
  }

  @Test("a flood kills the child where that is asked for")
  func floodKilled() throws {
    let child = try shell(
      "exec yes", output: .captured(limitBytes: 1000, killsFlood: true))
    #expect(try child.wait(deadline: soon()) == .signaled(SIGKILL))
    #expect(child.capturedOutput.contains("bytes left out"))
  }

  @Test("only descriptors 0 to 3 are open in a child, and 0 is empty")
  func descriptors() throws {
    // One that is not close-on-exec.
    let leak = open("/dev/null", O_RDONLY)
    defer { close(leak) }
    let (channel, descriptor) = try LineChannel.pair()
    let child = try shell(
      "cat; for f in /proc/$$/fd/*; do [ -e $f ] && echo ${f##*/}; done; echo hello >&3",
      channel: descriptor)
    close(descriptor)
    #expect(try channel.receive(deadline: soon()) == .line(Data("hello".utf8)))
    #expect(try channel.receive(deadline: soon()) == .closed)
    #expect(try child.wait() == .exited(0))
    #expect(child.capturedOutput == "0\n1\n2\n3\n")
  }

  @Test("without a channel descriptor 3 is closed, and the environment is what was given")
  func environment() throws {
    let child = try shell(
      "{ : >&3; } 2>/dev/null || echo closed; echo \"$GIVEN\" \"${HOME-none}\"",
      environment: ["GIVEN": "this"])
    #expect(try child.wait() == .exited(0))
    #expect(child.capturedOutput == "closed\nthis none\n")
  }

  @Test("a deadline that passes leaves the child running")
  func deadline() throws {
    let child = try shell("exec sleep 1000")
    #expect(try child.wait(deadline: .now + .milliseconds(5)) == nil)
    child.kill()
    #expect(try child.wait() == .signaled(SIGKILL))
    child.kill()
    #expect(try child.wait() == .signaled(SIGKILL))
  }

  @Test(
    "killing a child takes the processes with it that the child has started, which held its output open"
  )
  func group() throws {
    let child = try shell("sleep 1000 & echo $!; wait")
    try child.waitForOutput()
    let grandchild = try #require(pid_t(child.capturedOutput.split(separator: "\n").first ?? ""))
    child.kill()
    #expect(try child.wait(deadline: soon()) == .signaled(SIGKILL))
    #expect(isGone(grandchild))
  }

  @Test("what a child leaves behind in its group is ended with it")
  func leftBehind() throws {
    let child = try shell("sleep 1000 & echo $!")
    #expect(try child.wait(deadline: soon()) == .exited(0))
    let grandchild = try #require(pid_t(child.capturedOutput.split(separator: "\n").first ?? ""))
    #expect(isGone(grandchild))
  }

  @Test("a signal reaches a child that handles it, and SIGKILL one that ignores SIGTERM")
  func signals() throws {
    let deaf = try shell("trap '' TERM; echo ready; while :; do sleep 1000; done")
    try deaf.waitForOutput()
    deaf.kill(SIGTERM)
    deaf.kill()
    #expect(try deaf.wait(deadline: soon()) == .signaled(SIGKILL))
    let polite = try shell("trap 'exit 7' TERM; echo ready; while :; do sleep 1000 & wait; done")
    try polite.waitForOutput()
    polite.kill(SIGTERM)
    #expect(try polite.wait(deadline: soon()) == .exited(7))
  }

  @Test("a child that nobody waited for does not outlive its last reference")
  func dropped() throws {
    let pid = try shell("exec sleep 1000").pid
    #expect(isGone(pid))
  }

  @Test("a missing program is an error with its path")
  func missing() throws {
    let error = try instarError {
      _ = try ChildProcess.start(executable: "/nonexistent/instar-keeper", arguments: [])
    }
    #expect(error.code == .incompleteInstallation)
    #expect(error.what.contains("/nonexistent/instar-keeper"))
  }
}
