import Foundation
import Glibc
import InstarSchema
import InstarWire

/// Standard output and standard error. A text goes out with one write, so that lines of several
/// threads do not mix.
enum Console {
  /// To standard output: what was asked for.
  static func write(_ text: String) {
    write(text, to: STDOUT_FILENO)
  }

  /// To standard error: progress, warnings, errors.
  static func note(_ text: String) {
    write(text, to: STDERR_FILENO)
  }

  private static func write(_ text: String, to descriptor: Int32) {
    write(Data((text.hasSuffix("\n") ? text : text + "\n").utf8), to: descriptor)
  }

  /// A reader that is gone ends the process by SIGPIPE, as with any tool; other errors of a terminal
  /// have nobody left to be told to.
  static func write(_ data: Data, to descriptor: Int32) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return
      }
    }
  }
}

/// `--json`: one object a line on standard output.
enum JSONLine {
  static func write(_ value: some Encodable) {
    do {
      Console.write(try WireCoder.line(value), to: STDOUT_FILENO)
    } catch {
      Console.note(error.description)
    }
  }
}
