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
  static var stores: CompletionKind {
    .custom { words, _, prefix in CompletedNames(words).stores(prefix) }
  }

  /// The stores that are held; else files.
  static var heldStores: CompletionKind {
    .custom { words, _, prefix in CompletedNames(words).heldStores(prefix) }
  }

  /// The names of the plans that instard has; else those of the installed plugins.
  static var plans: CompletionKind {
    .custom { words, _, prefix in CompletedNames(words).plans().filter { $0.hasPrefix(prefix) } }
  }

  /// The numbers of the waves of the rollouts.
  static var waves: CompletionKind {
    .custom { words, _, prefix in CompletedNames(words).waves().filter { $0.hasPrefix(prefix) } }
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
