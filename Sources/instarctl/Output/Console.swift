import Foundation
import Glibc
import InstarSchema
import InstarWire
import Synchronization

/// Standard output and standard error: the only code of instarctl that writes to them.
///
/// It takes lines, whose values are escaped, and JSON. Each call is one write(2), so that lines of several threads do
/// not mix.
enum Console {
  /// The error of a write to standard output; `nil` while all writes succeeded.
  private static let outputFailure = Mutex<Int32?>(nil)

  /// The commands that only show something.
  private static let showingCommands: Set = [
    "probe", "plan", "stores", "status", "history", "report", "journal", "verify", "rehearse",
    "schema", "config",
  ]

  /// Ends the program if a part of the output was lost, such as on a full disk. Nobody knows then what it did.
  static func endIfOutputIsLost() {
    guard let code = outputFailure.withLock({ $0 }) else { return }
    let isRepeatable = LaunchArguments.remaining.first.map(showingCommands.contains) == true
    note(
      InstarError(
        .outputFailed, "cannot write to standard output", cause: String(cString: strerror(code)),
        next: isRepeatable
          ? "\(CommandText.repetition), with another output"
          : "the command was executed; to see what was done to stores, run: instarctl history"))
    Foundation.exit(ExitStatus.failed.rawValue)
  }

  /// Has a terminal begin at its top; nothing elsewhere.
  static func clearScreen() {
    if isatty(STDOUT_FILENO) == 1 { write(Data("\u{1B}[H\u{1B}[2J".utf8), to: STDOUT_FILENO) }
  }

  /// Replaces what the terminal shows by these lines, as far as they fit its window. Elsewhere they follow what was
  /// written before.
  static func showScreen(_ lines: [ConsoleLine]) {
    guard isatty(STDOUT_FILENO) == 1 else { return write(lines) }
    clearScreen()
    write(WindowSize(of: STDOUT_FILENO).fitting(lines))
  }

  /// Writes what was asked for to standard output.
  static func write(_ lines: [ConsoleLine]) {
    write(lines, to: STDOUT_FILENO)
  }

  static func write(_ line: ConsoleLine) {
    write([line])
  }

  /// Writes progress, notes and warnings to standard error.
  static func note(_ lines: [ConsoleLine]) {
    write(lines, to: STDERR_FILENO)
  }

  static func note(_ line: ConsoleLine) {
    note([line])
  }

  static func note(_ error: InstarError) {
    var error = error
    // A path with a line break must not begin a line of its own. The other parts are indented.
    error.what = ConsoleLine(error.what).text
    note(ConsoleLine.lines(of: error.description))
  }

  /// Writes the output of another program to standard error, unchanged.
  static func pass(_ output: String) {
    write(Data(output.utf8), to: STDERR_FILENO)
  }

  /// Writes a page of HTML to standard output, unchanged: its texts are escaped.
  static func write(page: String) {
    write(Data(page.utf8), to: STDOUT_FILENO)
  }

  /// Writes a value as one line of JSON.
  static func write(json value: some Encodable) {
    write(json: Result { () throws(InstarError) in try line(json: value) })
  }

  /// Writes a line of JSON, or the error of making it.
  static func write(json line: Result<Data, InstarError>) {
    switch line {
    case .success(let line): write(line, to: STDOUT_FILENO)
    case .failure(let error):
      note(error)
      // Whoever reads the output must not take it for the whole answer.
      outputFailure.withLock { $0 = $0 ?? EINVAL }
    }
  }

  /// Returns a value as one line of JSON.
  static func line(json value: some Encodable) throws(InstarError) -> Data {
    line(json: String(decoding: try WireCoder.line(value).dropLast(), as: UTF8.self))
  }

  /// Returns JSON without line breaks as one line.
  static func line(json text: String) -> Data {
    Data("\(text.escapedForTerminal)\n".utf8)
  }

  /// Writes JSON to standard output.
  static func write(json text: String) {
    write(escaped(json: text), to: STDOUT_FILENO)
  }

  /// Characters that control a terminal can only be in the strings of JSON, and `\u009b` means the same there.
  private static func escaped(json text: String) -> Data {
    // By bytes: to find characters takes longer than to encode the value.
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { String(Substring($0)).escapedForTerminal }
    return Data(lines.joined(separator: "\n").utf8)
  }

  /// The line at the bottom of the terminal behind standard error. It goes away before other output and comes back
  /// after it. `nil` for none.
  static var status: ConsoleLine? {
    get { shownStatus.withLock { $0 } }
    set {
      shownStatus.withLock { status in
        guard status != nil || newValue != nil else { return }
        status = newValue
        writeAll(Data((clearLine + (newValue?.text ?? "")).utf8), to: STDERR_FILENO)
      }
    }
  }
  private static let shownStatus = Mutex<ConsoleLine?>(nil)
  private static let clearLine = "\r\u{1B}[K"

  private static func write(_ lines: [ConsoleLine], to descriptor: Int32) {
    write(Data(lines.map { $0.text + "\n" }.joined().utf8), to: descriptor)
  }

  private static func write(_ data: Data, to descriptor: Int32) {
    shownStatus.withLock { status in
      guard let status else { return writeAll(data, to: descriptor) }
      writeAll(Data(clearLine.utf8), to: STDERR_FILENO)
      writeAll(data, to: descriptor)
      writeAll(Data(status.text.utf8), to: STDERR_FILENO)
    }
  }

  /// A reader that is gone ends the process by SIGPIPE, as with any tool. Errors of standard error cannot be reported
  /// anywhere.
  private static func writeAll(_ data: Data, to descriptor: Int32) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        let code = errno
        if descriptor == STDOUT_FILENO { outputFailure.withLock { $0 = $0 ?? code } }
        return
      }
    }
  }
}

/// What a command prints: text, or with `--json` one object.
protocol CommandOutput: Encodable {
  var lines: [ConsoleLine] { get }
  /// Why there is no output, or only a part of it.
  var error: InstarError? { get }
  /// All errors that the text shows.
  var errors: [InstarError] { get }
}

extension CommandOutput {
  var error: InstarError? { nil }
  var errors: [InstarError] { [error].compactMap(\.self) }
}
