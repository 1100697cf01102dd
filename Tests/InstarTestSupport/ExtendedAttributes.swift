import Foundation

/// Extended attributes of files, which Swift's modules of the C library leave out.
public enum ExtendedAttributes {
  /// Sets an attribute.
  ///
  /// - Returns: `false` where the file system refuses it.
  public static func set(_ name: String, _ value: [UInt8], of path: String) -> Bool {
    let text = value.map { String(format: "%02x", $0) }.joined()
    return run(
      "os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))", path, name, text) != nil
  }

  /// Returns the attribute; `nil` where the file does not have it.
  public static func value(_ name: String, of path: String) -> String? {
    run("print(os.getxattr(sys.argv[1], sys.argv[2]).hex())", path, name)
  }

  /// An access control list: its owner may read and write, and one user may do what `permissions` says (4 is to read, 2
  /// to write).
  public static func accessList(of user: UInt32, permissions: UInt8) -> [UInt8] {
    // Version 2; then owner, user, group, mask and others: tag, permissions, number.
    let none: [UInt8] = [255, 255, 255, 255]
    let number = withUnsafeBytes(of: user.littleEndian) { Array($0) }
    let entries: [(tag: UInt8, permissions: UInt8, number: [UInt8])] = [
      (1, 6, none), (2, permissions, number), (4, 0, none), (16, permissions, none), (32, 0, none),
    ]
    return entries.reduce(into: [2, 0, 0, 0]) {
      $0 += [$1.tag, 0, $1.permissions, 0] + $1.number
    }
  }

  /// - Returns: What the script prints; `nil` where it fails.
  private static func run(_ script: String, _ arguments: String...) -> String? {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", "import os, sys; " + script] + arguments
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return nil }
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return process.terminationStatus == 0 ? String(decoding: text, as: UTF8.self) : nil
  }
}
