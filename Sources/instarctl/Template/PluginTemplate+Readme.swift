extension PluginTemplate {
  var readme: String {
    let first = versions[0].number
    let last = versions[versions.count - 1]
    let commands = Self.aligned([
      ("instarctl plugin test", "run the tests"),
      ("instarctl plugin build . -o \(name).so", "build the plugin"),
      (
        "instarctl plugin check \(name).so --schemas Schemas --store \(samplePath)",
        "find mistakes in the plan"
      ),
      ("cp \(samplePath) my.store", "a store at \(first)"),
      ("instarctl plan --plugin \(name).so my.store", "show each change and its SQL"),
      ("instarctl migrate --plugin \(name).so my.store", "migrate it to \(last.number)"),
      ("instarctl restore my.store", "undo that"),
    ])
    let rows = versions.map { "| \($0.number) | `\($0.typeName)` |" }.joined(separator: "\n")
    return """
      # \(name)

      A plugin of Instar: it migrates stores of an app from one version of the models to the next.

      | version | models |
      |---|---|
      \(rows)

      \(exampleChange)
      Replace this example by the change that your app needs.

      ## Commands

      In this folder:

      ```sh
      \(commands)
      ```

      ## Files

      - `Sources/\(name)`: the versions of the models, and the plan `\(planName)`. Never change a version that was released:
        users have stores of it. Add a version and a stage instead.
      - `Tests`: the tests, with Swift Testing and InstarTesting, and `\(planName).sql`, the statements that the plan makes.
        After a change that is right, delete that file and run the tests
        twice: the first time writes it again.
      - `Stores`: a sample store. Keep a store of each released version here, and test with copies of it.
      - `Schemas`: the released versions. `plugin check` compares the plan with them. After a release:
        `instarctl schema export \(name).so -o Schemas`
      - `\(name).referencestores`: see the README there.
      - `Package.swift`: for editors. Open this folder in one that uses sourcekit-lsp.

      Continue with `man instar-plugin`.

      """
  }

  /// Commands with their comments in one column.
  private static func aligned(_ commands: [(command: String, comment: String)]) -> String {
    let width = commands.map(\.command.count).max() ?? 0
    return commands.map { command, comment in
      command + String(repeating: " ", count: width - command.count) + "  # \(comment)"
    }.joined(separator: "\n")
  }

  var referenceReadme: String {
    """
    # Reference stores

    Only needed if the app on Apple's platforms opens migrated stores: Apple's frameworks recognize a version by hashes that
    only they can compute. Let the app create an empty store of each version, and put it here: `2.0.0.sqlite`.

    Install this folder beside the plugin. See `man instar-plugin`.

    """
  }
}
