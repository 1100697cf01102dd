import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("A program started as another user", .enabled(if: geteuid() == 0, "that needs root"))
struct ProcessIdentityTests {
  /// The lines of /proc/self/status of a program started so.
  private func status(as identity: ProcessIdentity) throws -> [String: String] {
    let child = try ChildProcess.start(
      executable: "/bin/cat", arguments: ["/proc/self/status"], output: .captured(limitBytes: 8192),
      identity: identity)
    #expect(try child.wait(deadline: soon()) == .exited(0))
    var lines: [String: String] = [:]
    for line in child.capturedOutput.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      lines[String(parts[0])] = parts[1].split(whereSeparator: \.isWhitespace)
        .joined(separator: " ")
    }
    return lines
  }

  private static let noCapability = "0000000000000000"

  @Test(
    "a program started as another user has that user's numbers and groups, no capability, and no way to get one"
  )
  func user() throws {
    var user = ProcessIdentity.User(uid: 4001)
    #expect(user.groups == [65534] && user.name == "4001")
    user.gid = 4002
    user.groups = [4002, 4003]
    let status = try status(as: .user(user))
    #expect(status["Uid"] == "4001 4001 4001 4001")
    #expect(status["Gid"] == "4002 4002 4002 4002")
    #expect(status["Groups"] == "4002 4003")
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
      #expect(status[set] == Self.noCapability)
    }
    #expect(status["NoNewPrivs"] == "1")
    #expect(status["SigBlk"] == Self.noCapability)
    // But for the two signals that the C library keeps for itself.
    let ignored = try #require(UInt64(status["SigIgn"] ?? "", radix: 16))
    #expect(ignored & ~(0b11 << 31) == 0)
  }

  @Test("root without its capabilities is root only by name")
  func unprivileged() throws {
    let status = try status(as: .unprivileged)
    #expect(status["Uid"] == "0 0 0 0")
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
      #expect(status[set] == Self.noCapability)
    }
    #expect(status["NoNewPrivs"] == "1")
  }

  @Test("a user of this system has the groups that the system says")
  func knownUser() {
    let root = ProcessIdentity.User(uid: 0)
    #expect(root.name == "root" && root.gid == 0 && root.groups.contains(0))
    #expect(root.home.hasPrefix("/"))
    #expect(ProcessIdentity.label(of: 0) == "root (0)")
    #expect(ProcessIdentity.label(of: 4001) == "4001")
  }

  @Test(
    "a program started as another user has the descriptors and the channel it is given, and no other"
  )
  func descriptors() throws {
    let (channel, childEnd) = try LineChannel.pair(lineLimitBytes: 100)
    defer { channel.close() }
    let keep = LineChannel(descriptor: childEnd)
    defer { keep.close() }
    let child = try ChildProcess.start(
      executable: "/bin/sh",
      arguments: ["-c", "ls /proc/$$/fd; pwd; echo $NOTIFY_SOCKET-$HOME >&3"],
      channel: keep.descriptor, output: .captured(limitBytes: 8192),
      identity: .user(.init(uid: 4001)))
    #expect(try child.wait(deadline: soon()) == .exited(0))
    #expect(child.capturedOutput == "0\n1\n2\n3\n/\n")
    #expect(try channel.receive() == .line(Data("-/".utf8)))
  }

  @Test("what cannot be started is an error with its reason")
  func failures() throws {
    let user = ProcessIdentity.user(.init(uid: 4001))
    #expect(
      try instarError {
        _ = try ChildProcess.start(executable: "/nonexistent", arguments: [], identity: user)
      }.code == .incompleteInstallation)
    let folder = try TemporaryFolder(mode: 0o700)
    let program = try folder.write("#!/bin/sh\n", to: "program", mode: 0o755)
    let error = try instarError {
      _ = try ChildProcess.start(executable: program, arguments: [], identity: user)
    }
    #expect(error.what == "cannot start '\(program)' as user 4001")
    #expect(error.cause == "Permission denied")
    #expect(error.code == .incompleteInstallation)
  }

  @Test("owners and modes tell where a user may make files, all the way up")
  func files() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let file = folder.path + "/a/b/file"
    try FileManager.default.createDirectory(
      atPath: folder.path + "/a/b", withIntermediateDirectories: true)
    try #require(symlink("a/b", folder.path + "/link") == 0)
    var user = ProcessIdentity.User(uid: 4001)
    user.groups = [4002]

    func mayWork(_ top: mode_t, _ last: mode_t, owner: UInt32, group: UInt32) -> Bool {
      #expect(chmod(folder.path, 0o755) == 0 && chmod(folder.path + "/a", top) == 0)
      #expect(lchown(folder.path + "/a/b", owner, group) == 0)
      #expect(chmod(folder.path + "/a/b", last) == 0)
      #expect(
        user.mayMakeFiles(beside: file) == user.mayMakeFiles(beside: folder.path + "/link/file"))
      return user.mayMakeFiles(beside: file)
    }
    #expect(mayWork(0o755, 0o700, owner: 4001, group: 0))
    #expect(mayWork(0o711, 0o770, owner: 0, group: 4002))
    #expect(mayWork(0o755, 0o777, owner: 0, group: 0))
    #expect(!mayWork(0o755, 0o755, owner: 0, group: 0))
    #expect(!mayWork(0o700, 0o700, owner: 4001, group: 0))
    // An owner without a right does not get it from a group.
    #expect(!mayWork(0o755, 0o077, owner: 4001, group: 4002))
    #expect(!user.mayMakeFiles(beside: folder.path + "/missing/file"))
  }
}
