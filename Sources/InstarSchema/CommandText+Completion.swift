/// What advice leaves open, and its completion.
///
/// The next step of an error is text, also between processes. Its writer leaves open what only other code knows. That
/// code completes the text, with a `Completion`. No other file looks for the words that stand for what is left open.
///
/// | its writer does not know | and writes | completed by |
/// |---|---|---|
/// | the command that was run | `repetition` | the run; the queue of the daemon |
/// | the store that a statement reads | `schemaListing(of: nil)` | `InstarError.about` |
/// | the backups of a damaged store | the advice on a `Damage` | `StateFolder.completing` |
/// | the state folder | a command that ends with the store's path | `StateFolder.completing` |
/// | how a client reaches instard | a command that asks an instard | the client; the log of events |
extension CommandText {
  /// The next step of an error whose writer does not know the command.
  package static let repetition = "run the same command again"

  /// Something that a text about commands leaves open.
  package enum Completion {
    /// The command to repeat. Whoever reads the journal has run none.
    case command(String)
    /// The path of the store whose schema is to be read.
    case store(String)
    /// What to do about a damaged store, as its backups allow it.
    case remedy(String, Damage, store: String)
    /// The option of the state folder, such as " --state-dir 'PATH'", of the first command about a store. Empty for
    /// the default.
    case stateFolder(option: String, store: String)
    /// The option of commands that ask an instard, so that they ask the same one, such as " --socket 'PATH'". Empty for
    /// the default.
    case instard(option: String)
  }

  /// Returns a text with what it left open. One that leaves nothing open stays.
  package static func completing(_ text: String, _ completion: Completion) -> String {
    switch completion {
    case .command(let command): text.replacing(repetition, with: "run: \(command)")
    case .store(let store):
      text.replacing(schemaListing(of: nil), with: schemaListing(of: store))
    case .remedy(let remedy, let damage, let store):
      text.replacing(damage.advice(on: store), with: remedy)
    case .stateFolder(let option, let store): adding(option, behind: store, in: text)
    case .instard(let option): adding(option, toCommandsOfInstardIn: text)
    }
  }

  private static func adding(_ option: String, behind store: String, in text: String) -> String {
    guard let command = text.firstRange(of: "instarctl "),
      let path = text[command.upperBound...].firstRange(of: quoted(store)),
      !text[command.upperBound...].hasPrefix("schema "),
      !text[command.upperBound..<path.lowerBound].contains("--state-dir "),
      !text[path.upperBound...].hasPrefix(option)
    else { return text }
    return text[..<path.upperBound] + option + text[path.upperBound...]
  }

  private static func adding(_ option: String, toCommandsOfInstardIn text: String) -> String {
    // The daemon asks this about each entry of its journal.
    guard !option.isEmpty, text.contains("instarctl ") else { return text }
    // The others have no such option, or have --state-dir, which excludes it.
    let asking =
      /instarctl (?:status|stores|retry|pause|resume|approve|rescan|(?:report|history|hold|release)(?![^;]*--state-dir))\b/
    return text.replacing(asking) { "\($0.output)\(option)" }
  }

  /// Returns what to do about a store that instard no longer retries by itself: the advice, then the retry, which
  /// replaces the command that migrates the store.
  package static func retrying(_ store: String, after advice: String?) -> String {
    let retry = retry(store)
    guard let advice = advice.map({ completing($0, .command(retry)) }) else {
      return "run: \(retry)"
    }
    if advice.contains(retry) { return advice }
    let migration = /run: instarctl (?:migrate|rehearse)\b.*/
    return advice.contains(migration)
      ? advice.replacing(migration) { _ in "run: \(retry)" } : "\(advice), then run: \(retry)"
  }
}

extension CommandText {
  /// What an advice on a damaged store is about, whose writer does not know its backups.
  package enum Damage: CaseIterable, Sendable {
    /// The content of a store that SQLite can open.
    case content
    /// The file of a store: SQLite cannot open it, so `restore` refuses it.
    case file
    /// A file that is not a store. It may have been one if the ledger has a backup.
    case unknownFile

    /// The advice that a `remedy` replaces.
    package func advice(on store: String) -> String {
      switch self {
      case .content: CommandText.restoring(store)
      case .file: CommandText.replacing(store)
      case .unknownFile: CommandText.checking(store)
      }
    }
  }
}

extension InstarError {
  /// Completes the next step, if there is one.
  package mutating func completeNext(_ completion: CommandText.Completion) {
    next = next.map { CommandText.completing($0, completion) }
  }
}
