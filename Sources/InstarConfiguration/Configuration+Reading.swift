import Foundation
public import InstarLinux
public import InstarSchema

extension Configuration {
  /// Reads a configuration file, and then the files of the folder `conf.d` beside it whose names end in `.yml`, in the
  /// order of their names.
  ///
  /// Of a key with a single value the last file's holds. Lists add up: `plugins` (the first file that has it replaces
  /// the built-in folders) and `watches`; a watch of a folder that an earlier file has watched already replaces that
  /// one, in its place.
  ///
  /// - Parameters:
  ///   - path: a YAML file; see `packaging/instard.yml` for every key.
  ///   - defaultStateFolder: The state folder where no file names one.
  /// - Throws: The first error that `check(path:defaultStateFolder:)` returns.
  public static func read(
    path: String, defaultStateFolder: String = Installation.defaultStateFolder
  ) throws(InstarError) -> Configuration {
    let (configuration, errors) = check(path: path, defaultStateFolder: defaultStateFolder)
    if let first = errors.first { throw first }
    return configuration
  }

  /// Reads a configuration as `read(path:defaultStateFolder:)` does, but does not stop at the first mistake.
  ///
  /// - Returns: What could be read, and all errors, in the order of the files and their lines: `missingFile` where a
  ///   file does not exist; `invalidConfiguration` with file and line, where it cannot be read, is not YAML, has a key
  ///   that does not exist, or an invalid value.
  public static func check(
    path: String, defaultStateFolder: String = Installation.defaultStateFolder
  ) -> (configuration: Configuration, errors: [InstarError]) {
    var configuration = Configuration(stateFolder: defaultStateFolder)
    let files: [String]
    do throws(InstarError) {
      files = try Self.files(path: path)
    } catch {
      return (configuration, [error])
    }
    var hasPlugins = false
    var mistakes = ConfigurationErrors()
    for file in files {
      mistakes.collect { () throws(ConfigurationErrors) in
        let reader = ConfigurationReader(source: file, main: path)
        try reader.read(try contents(of: file), into: &configuration, &hasPlugins)
      }
    }
    return (configuration, mistakes.errors)
  }

  /// The files that `read(path:)` reads, in order.
  ///
  /// - Throws: `invalidConfiguration` where `conf.d` exists and cannot be read.
  public static func files(path: String) throws(InstarError) -> [String] {
    let folder = path.sibling("conf.d")
    guard access(folder, F_OK) == 0 else { return [path] }
    let names: [String]
    do throws(InstarError) {
      names = try FolderNames.all(in: folder, suffix: ".yml")
    } catch {
      throw InstarError(
        .invalidConfiguration, "cannot read the configuration folder '\(folder)'",
        cause: error.cause, next: "run: chmod 755 \(CommandText.quoted(folder))")
    }
    let pieces = names.filter { !$0.hasPrefix(".") }
    // By bytes, so that the order does not depend on a language.
    return [path]
      + pieces.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      .map { "\(folder)/\($0)" }
  }

  private static func contents(of path: String) throws(ConfigurationErrors) -> String {
    guard access(path, R_OK) == 0 else { throw ConfigurationErrors(unreadable(path, errno)) }
    guard let data = FileManager.default.contents(atPath: path) else {
      throw ConfigurationErrors(
        InstarError(
          .invalidConfiguration, "cannot read the configuration '\(path)'",
          cause: "not a regular file", next: "pass the path of a YAML file"))
    }
    guard let text = String(data: data, encoding: .utf8) else {
      throw ConfigurationErrors(
        InstarError(
          .invalidConfiguration, "cannot use the configuration '\(path)'",
          cause: "the file is not UTF-8 text", next: "save it as UTF-8"))
    }
    return text
  }

  private static func unreadable(_ path: String, _ reason: Int32) -> InstarError {
    let what = "cannot read the configuration '\(path)'"
    guard [ENOENT, ENOTDIR].contains(reason) else {
      return .systemFailure(
        what, reason, code: .invalidConfiguration,
        next: "run the command as root, or as a user who may read the file; run: "
          + "ls -l \(CommandText.quoted(path))")
    }
    var status = stat()
    if lstat(path, &status) == 0 {
      return InstarError(
        .invalidConfiguration, what, cause: "a symbolic link to a file that does not exist",
        next: "remove or repair the link; run: ls -l \(CommandText.quoted(path))")
    }
    return InstarError(
      .missingFile, what, cause: "the file does not exist",
      next: "create \(CommandText.quoted(path)), or pass another file: --config FILE")
  }

  /// Reads a configuration from text.
  ///
  /// - Parameter source: the name of the file, for messages.
  /// - Throws: `invalidConfiguration`, as `read(path:)`.
  public init(yaml: String, source: String) throws(InstarError) {
    self.init()
    var hasPlugins = false
    do throws(ConfigurationErrors) {
      try ConfigurationReader(source: source, main: source).read(yaml, into: &self, &hasPlugins)
    } catch {
      if let first = error.errors.first { throw first }
    }
  }
}
