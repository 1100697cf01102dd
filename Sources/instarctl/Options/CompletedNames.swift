import ArgumentParser
import Foundation
import InstarConfiguration
import InstarControl
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

extension CompletionKind {
  /// The stores that instard watches; else files.
  static var stores: CompletionKind { .offering { $0.stores($1) } }

  /// The stores that are held; else files.
  static var heldStores: CompletionKind { .offering { $0.heldStores($1) } }

  /// The names of the plans that instard has; else those of the installed plugins.
  static var plans: CompletionKind {
    .offering { names, prefix in names.plans().filter { $0.hasPrefix(prefix) } }
  }

  /// The numbers of the waves of the rollouts.
  static var waves: CompletionKind {
    .offering { names, prefix in names.waves().filter { $0.hasPrefix(prefix) } }
  }

  /// Names that `find` returns for the beginning of a word, in the form that the script of the shell takes.
  private static func offering(
    _ find: @escaping @Sendable (CompletedNames, _ prefix: String) -> [String]
  ) -> CompletionKind {
    .custom { words, _, prefix in
      let shell = CompletionShell.requesting
      // These two pass words as they are typed, with their quotes.
      let isTyped = shell == .bash || shell == .zsh
      let names = CompletedNames(isTyped ? words.map(CompletedNames.unquoted) : words)
      // A shell reads one name a line, and no terminal shows the others as they are.
      let found = find(names, isTyped ? CompletedNames.unquoted(prefix) : prefix)
        .filter { !$0.unicodeScalars.contains(where: \.isUnsafeOnTerminal) }
      return switch shell {
      case .bash: found.map(CompletedNames.forBash)
      case .zsh: found.compactMap(CompletedNames.forZsh)
      default: found
      }
    }
  }
}

/// What a shell offers for a word that somebody is typing.
///
/// The shell waits meanwhile, and shows what a program prints. So nothing here is printed but names, every error means
/// that there is nothing to offer, and instard has a moment only.
struct CompletedNames {
  /// How long to wait for each reply of instard.
  private static let patience = Duration.milliseconds(80)
  private static let limit = 500

  private let words: [String]

  /// - Parameter words: The command line so far.
  init(_ words: [String]) { self.words = words }

  func stores(_ prefix: String) -> [String] {
    let stores = watchedStores(Manager.StoreFilter(prefix: prefix))
    return stores.isEmpty ? Self.files(prefix) : stores
  }

  func heldStores(_ prefix: String) -> [String] {
    let folder =
      value(of: "--state-dir").map(FilePath.absolute) ?? ServiceConfiguration.defaultStateFolder
    var stores = watchedStores(Manager.StoreFilter(activity: .held, prefix: prefix))
    if stores.isEmpty {
      let holds = try? StateFolder(reading: folder).holds().holds
      stores = (holds ?? []).map(\.store).filter { $0.hasPrefix(prefix) }.sorted()
    }
    return stores.isEmpty ? Self.files(prefix) : stores
  }

  func plans() -> [String] {
    let status = status()
    let plugins = status?.plugins ?? Self.installedPlugins()
    // The note of a plugin is read without loading it.
    let names = plugins.compactMap { try? PluginNote.read(path: $0).planNames }.joined()
    return Set(names).union(status?.rollouts.map(\.plan) ?? []).sorted()
  }

  func waves() -> [String] {
    let most = status()?.rollouts.map(\.waves).max() ?? 0
    return most > 0 ? (1...most).map(String.init) : []
  }

  // MARK: Asking

  /// - Returns: The first stores, by path; none where instard cannot be reached.
  private func watchedStores(_ filter: Manager.StoreFilter) -> [String] {
    var stores: [String] = []
    let done = InstarError(.interrupted, "enough", cause: "a list of names is short")
    // A list that ends early is as good as a whole one.
    try? connection()?.stream(.listStores, filter, patience: Self.patience) {
      (reply: Manager.StoresReply) throws(InstarError) in
      stores += reply.stores.map(\.store)
      if stores.count >= Self.limit { throw done }
    }
    return stores
  }

  private func status() -> Manager.Status? {
    try? connection()?.call(
      .getStatus, returning: Manager.StatusReply.self, patience: Self.patience
    ).status
  }

  private func connection() -> DaemonConnection? {
    try? SocketOptions.connection(to: value(of: "--socket"))
  }

  private func value(of option: String) -> String? {
    guard let place = words.firstIndex(of: option), place + 1 < words.count else { return nil }
    return words[place + 1].isEmpty ? nil : words[place + 1]
  }

  // MARK: Words

  /// The script for bash passes names to `compgen -W`, which expands each as a word of a command line: without quotes,
  /// bash would run `$(…)` in the name of a file.
  fileprivate static func forBash(_ name: String) -> String { CommandText.quoted(name) }

  /// The script has zsh quote names, but not `!`, which inserts words of earlier commands. A colon without a backslash
  /// ends the name, and begins its description.
  ///
  /// - Returns: `nil` for a name that cannot be offered.
  fileprivate static func forZsh(_ name: String) -> String? {
    name.contains("!")
      ? nil : name.replacing("\\", with: "\\\\").replacing(":", with: "\\:")
  }

  /// Returns what bash and zsh make of a word that is typed, whose last quotes may be open.
  static func unquoted(_ word: String) -> String {
    var text = String.UnicodeScalarView()
    var quote: Unicode.Scalar?
    var isEscaped = false
    for scalar in word.unicodeScalars {
      if isEscaped {
        isEscaped = false
        // Between double quotes, a backslash stands for itself before other characters.
        if quote != nil, !"$`\"\\".unicodeScalars.contains(scalar) { text.append("\\") }
        text.append(scalar)
      } else if scalar == "\\", quote != "'" {
        isEscaped = true
      } else if scalar == quote {
        quote = nil
      } else if quote == nil, scalar == "'" || scalar == "\"" {
        quote = scalar
      } else {
        text.append(scalar)
      }
    }
    return String(text)
  }

  // MARK: Files

  private static func installedPlugins() -> [String] {
    let configuration = (try? ServiceConfiguration.read(nil)) ?? Configuration()
    return configuration.pluginFolders.flatMap { folder in
      ((try? FolderNames.all(in: folder, suffix: ".so")) ?? []).map { "\(folder)/\($0)" }
    }
  }

  /// Files and folders as a shell completes them; folders end in a slash.
  static func files(_ prefix: String) -> [String] {
    let end = prefix.lastIndex(of: "/").map { prefix.index(after: $0) } ?? prefix.startIndex
    let (folder, name) = (String(prefix[..<end]), prefix[end...])
    let names =
      (try? FolderNames.all(in: folder.isEmpty ? "." : folder, prefix: String(name))) ?? []
    return names.filter { !$0.hasPrefix(".") || name.hasPrefix(".") }.sorted().prefix(limit).map {
      var isFolder: ObjCBool = false
      let path = folder + $0
      _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
      return isFolder.boolValue ? path + "/" : path
    }
  }
}
