import Foundation
import Glibc

/// Colours of standard output: only on a terminal, and not where `NO_COLOR` is set (no-color.org).
enum Style {
  case good, warning, bad, faint

  private static let isOn: Bool = {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty
      && environment["TERM"] != "dumb"
  }()

  private var code: String {
    switch self {
    case .good: "32"
    case .warning: "33"
    case .bad: "31"
    case .faint: "2"
    }
  }

  func callAsFunction(_ line: ConsoleLine) -> ConsoleLine {
    Self.isOn ? line.colored("\u{1B}[\(code)m", "\u{1B}[0m") : line
  }
}
