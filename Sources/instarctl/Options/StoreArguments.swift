import ArgumentParser

/// The stores that a command works on.
struct StoreArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A store.", valueName: "store"), completion: .file(),
    transform: FilePath.typed)
  var files: [String]

  var paths: [String] { files.map(FilePath.ofStore) }
}
