import ArgumentParser
import InstarLinux
import InstarSchema

/// `instarctl plugin test`
struct PluginTestCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "test",
    abstract: "Compile and run the tests of a plugin.",
    discussion: """
        instarctl plugin test Notes
        instarctl plugin test Notes --filter letters

      Compiles the plan in the folder's Sources, or in the folder itself if it has none, and the tests in \
      its Tests against Instar's SDK, and runs the tests. They use Swift Testing, and InstarTesting to make, \
      migrate and compare stores; 'instarctl plugin new' writes some to begin with. What is compiled \
      goes to the folder's .build/plugin-test.

      Tests that import XCTest are compiled and run by 'swift test', which needs a Package.swift as \
      'plugin new' writes it.

      The exit status is 0 if all tests pass, and 1 if one fails.
      """)

  @Argument(
    help: ArgumentHelp("The folder with Sources and Tests.", valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var folder = "."

  @Option(
    help: ArgumentHelp(
      "Run only tests whose names match this regular expression; may be given several times.",
      valueName: "pattern"))
  var filter: [String] = []

  @Option(
    help: ArgumentHelp("Compile with the rules of this version of Swift.", valueName: "version"))
  var swiftVersion = PluginBuilder.LanguageMode.swift5

  @Option(
    help: ArgumentHelp(
      "The name of the module that the tests import. (default: the name of the one folder in Sources, else that of the plugin's folder)",
      valueName: "name"))
  var moduleName: String?

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let installation = try Installation.locate()
    try installation.requireSDK()
    let tester = PluginTester(
      installation: installation, folder: try FilePath.ofFolder(folder, to: "test plugin"),
      languageMode: swiftVersion, moduleName: moduleName, filters: filter)
    let outcome = try tester.run(outputToErrors: output.json)
    output.write(outcome)
    return outcome.passed ? .done : .failed
  }
}
