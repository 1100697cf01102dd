/// Commands that errors and events propose. They work as they are typed: a shell reads each path as one word.
package enum CommandText {
  /// Returns what to do where only an administrator may run a command.
  package static func ofAdministrator(_ command: String, isAdmin: Bool) -> String {
    isAdmin ? "run: \(command)" : "ask an administrator to run: \(command)"
  }

  /// Returns a command that migrates a store; with plugins as for `MigrationCommand`.
  package static func migrate(_ store: String, plugins: [String], adopting version: String? = nil)
    -> String
  {
    var command = MigrationCommand(store: store, plugins: plugins)
    command.adoptedVersion = version
    return command.text
  }

  /// Returns a command that brings a store back to the backup of a run.
  package static func restore(_ store: String, run: String) -> String {
    "instarctl restore --run \(quoted(run)) \(quoted(store))"
  }

  /// Returns what to do about a damaged store that SQLite can open. It is replaced where `restore` would refuse that.
  ///
  /// - Parameter store: `nil` where the path is not known.
  package static func restoring(_ store: String?) -> String {
    store.map { "restore its newest backup: instarctl restore \(quoted($0))" }
      ?? "restore the store from a backup"
  }

  /// Returns what to do about a damaged store whose newest backup cannot be restored, but that of a run can.
  package static func restoring(_ store: String, run: String) -> String {
    "restore its newest usable backup: \(restore(store, run: run))"
  }

  /// Returns what to do about a damaged store that SQLite cannot open, so that `restore` refuses it. It is replaced by
  /// the commands, which need a backup.
  package static func replacing(_ store: String) -> String {
    "to see how to put its newest backup in its place, run: instarctl restore \(quoted(store))"
  }

  /// Returns what to do about a file that is not a store. It is replaced where the file was one.
  package static func checking(_ path: String) -> String {
    "check the path; run: file \(quoted(path))"
  }

  /// What to do about a damaged store without a backup that can be restored. instard does not migrate it.
  package static let restoringOwnBackup = "restore the store from a backup of your own"

  /// Returns what to do about a backup that cannot be used.
  package static func findingBackup(of store: String) -> String {
    "to find a sound backup, run: instarctl backups verify \(quoted(store))"
  }

  /// Returns a command that shows the state of a store, and who has it open.
  package static func probe(_ store: String) -> String { "instarctl probe \(quoted(store))" }

  /// Returns a command that lists the schema of a store.
  ///
  /// - Parameter store: `nil` where the path is not known.
  package static func schemaListing(of store: String?) -> String {
    "sqlite3 -readonly \(store.map(quoted) ?? "STORE") .schema"
  }

  /// Returns a command that makes instard retry a store.
  package static func retry(_ store: String) -> String { "instarctl retry \(quoted(store))" }

  /// Returns a command that ends the hold of a store.
  package static func release(_ store: String) -> String { "instarctl release \(quoted(store))" }

  /// Returns a path quoted for a shell.
  package static func quoted(_ path: String) -> String {
    let scalars = path.unicodeScalars
    if scalars.contains(where: \.isUnsafeOnTerminal) { return quotedWithEscapes(path) }
    // Not by characters: with an accent behind it, an apostrophe is another character, but a shell reads bytes.
    let parts = scalars.split(separator: "'", omittingEmptySubsequences: false).map(String.init)
    return "'" + parts.joined(separator: "'\\''") + "'"
  }

  /// Returns a path in the form that `ls` uses for such names: `$'a\012b'`. Errors indent the lines of their texts, and
  /// a terminal gets these characters in another form, so nobody could copy them.
  private static func quotedWithEscapes(_ path: String) -> String {
    var text = "$'"
    for scalar in path.unicodeScalars {
      switch scalar {
      case "'", "\\": text += "\\\(scalar)"
      case _ where scalar.isUnsafeOnTerminal:
        for byte in String(scalar).utf8 {
          let digits = String(byte, radix: 8)
          text += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
        }
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "'"
  }
}

extension Unicode.Scalar {
  /// Whether the character controls a terminal, begins a line or turns the direction of writing.
  package var isUnsafeOnTerminal: Bool {
    // Nearly all of every text, and their category need not be looked up.
    if (" "..."~").contains(self) { return false }
    // The joiner of the parts of an emoji is harmless.
    if self == "\u{200D}" { return false }
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return true
    default: return false
    }
  }
}

/// A command that migrates a store, rehearses that or plans it, with the options without which it would end otherwise.
package struct MigrationCommand: Sendable {
  package enum Name: String, Sendable {
    case migrate, rehearse, plan
  }

  package var name = Name.migrate
  package let store: String
  /// The plugins with the plan. The program of an app that migrates its own stores is not a plugin: `FILE.so` stands
  /// for the one to build of its plan.
  package var plugins: [String]
  /// The version after `--adopt`.
  package var adoptedVersion: String?
  package var adoptsDifferences = false
  package var acceptsLoss = false
  /// Other options, such as "--verify full".
  package var options: [String] = []

  /// A command without options.
  package init(store: String, plugins: [String]) {
    self.store = store
    self.plugins = plugins
  }

  /// The command as a shell reads it. It ends with the store's path.
  package var text: String {
    let files = plugins.filter { $0.hasSuffix(".so") }.map(CommandText.quoted)
    var words = ["instarctl", name.rawValue]
    words += (files.isEmpty ? ["FILE.so"] : files).map { "--plugin \($0)" }
    if let adoptedVersion { words.append("--adopt \(adoptedVersion)") }
    if adoptsDifferences { words.append("--yes") }
    if acceptsLoss { words.append("--accept-loss") }
    return (words + options + [CommandText.quoted(store)]).joined(separator: " ")
  }

  /// Returns the command that adopts the store as a version.
  package func adopting(_ version: String, withDifferences: Bool = false) -> String {
    var command = self
    command.adoptedVersion = version
    command.adoptsDifferences = withDifferences
    return command.text
  }

  /// Returns the command that also accepts the loss of values.
  package func acceptingLoss() -> String {
    var command = self
    command.acceptsLoss = true
    return command.text
  }
}
