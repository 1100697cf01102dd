import ArgumentParser
import InstarSchema

/// The version that an unversioned store is adopted as.
struct AdoptionOptions: ParsableArguments {
  @Option(
    name: .customLong("adopt"),
    help: ArgumentHelp(
      "Adopt an unversioned or unknown store as this version of the plan. If the store has more objects "
        + "than the version, or lacks one of its indexes, migrate and rehearse also need --yes. In a plain store, "
        + "objects that no version of the plan names are the app's, and need no --yes. If the store lacks anything "
        + "else, Instar refuses it.",
      valueName: "version"),
    transform: Schema.Version.typed)
  var version: Schema.Version?
}

extension Schema.Version {
  /// Parses a version from the command line.
  ///
  /// - Throws: `ValidationError`, a wrong usage.
  static func typed(_ text: String) throws -> Schema.Version {
    guard let version = Schema.Version(text) else {
      throw ValidationError("'\(text)' is not a version; write for example 1.2.3")
    }
    return version
  }
}
