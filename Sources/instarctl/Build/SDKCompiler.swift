import Foundation
import Glibc
import InstarLinux
import InstarSchema

/// The `swiftc` in PATH, and what it needs to know of Instar's SDK.
struct SDKCompiler {
  var path: String
  var installation: Installation

  /// - Returns: `nil` if PATH has no compiler. `missingAdvice` says what to do then.
  init?(_ installation: Installation) {
    guard let path = Self.program("swiftc") else { return nil }
    self.path = path
    self.installation = installation
  }

  static let missingCause = "no 'swiftc' in PATH"
  static let missingAdvice =
    "install Swift 6.3 or later (https://www.swift.org/install/linux/), or add it to PATH"

  /// The absolute path of a program in PATH.
  static func program(_ name: String) -> String? {
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in folders.split(separator: ":") {
      let candidate = "\(folder)/\(name)"
      if access(candidate, X_OK) == 0 { return FilePath.absolute(candidate) }
    }
    return nil
  }

  var libraryFolder: String {
    installation.library.parentFolder
  }

  /// With which files import the SDK's modules and use its macros.
  var importArguments: [String] {
    ["-I", installation.modulesFolder]
      + ["-load-plugin-executable", "\(installation.macroExecutable)#InstarMacros"]
  }

  /// A file that imports Foundation only also needs the SDK: `#Predicate` of other predicates is the SDK's.
  static let implicitImport = ["-Xfrontend", "-import-module", "-Xfrontend", "Instar"]

  /// With which a library or program uses `libInstar.so`.
  var linkArguments: [String] { ["-L", libraryFolder, "-lInstar"] }

  /// With which a program finds `libInstar.so`, and the Swift runtime that belongs to it.
  var runPathArguments: [String] { ["-Xlinker", "-rpath", "-Xlinker", libraryFolder] }
}
