/// Commands that errors and events propose. They work as they are typed: a shell reads each path as one word.
package enum CommandText {
  /// Returns a command that migrates a store.
  ///
  /// - Parameters:
  ///   - plugins: The plugins with the plan. The program of an app that migrates its own stores is not a plugin:
  ///     `FILE.so` stands for the one to build of its plan.
  ///   - options: More options, such as "--accept-loss".
  package static func migrate(
    _ store: String, plugins: [String], options: String...
  ) -> String {
    run("migrate", store, plugins, options)
  }

  /// Returns a command that rehearses the migration of a store; with plugins as for `migrate`.
  package static func rehearse(_ store: String, plugins: [String]) -> String {
    run("rehearse", store, plugins, [])
  }

  private static func run(
    _ verb: String, _ store: String, _ plugins: [String], _ options: [String]
  ) -> String {
    let files = plugins.filter { $0.hasSuffix(".so") }.map(quoted)
    let words = (files.isEmpty ? ["FILE.so"] : files).map { "--plugin \($0)" } + options
    return "instarctl \(verb) \(words.joined(separator: " ")) \(quoted(store))"
  }

  /// Returns a command that brings a store back to the backup of a run.
  package static func restore(_ store: String, run: String) -> String {
    "instarctl restore --run \(quoted(run)) \(quoted(store))"
  }

  /// Returns what to do about a damaged store.
  ///
  /// - Parameter store: `nil` where the path is not known.
  package static func restoring(_ store: String?) -> String {
    store.map { "restore its newest backup: instarctl restore \(quoted($0))" }
      ?? "restore the store from a backup"
  }

  /// Returns a command that shows the state of a store, and who has it open.
  package static func probe(_ store: String) -> String { "instarctl probe \(quoted(store))" }

  /// Returns a command that ends the hold of a store.
  package static func release(_ store: String) -> String { "instarctl release \(quoted(store))" }

  /// Returns a path quoted for a shell.
  package static func quoted(_ path: String) -> String {
    "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
