extension InstarError {
  /// The error of a command line that is not one of the command, with the command that shows its help.
  ///
  /// - Parameters:
  ///   - command: The command as a user types it, such as "instarctl plugin build".
  ///   - problem: What is wrong. ArgumentParser begins its sentences with a capital, the causes of errors have none.
  public init(usageOf command: String, problem: String) {
    self.init(
      .wrongUsage, "cannot run '\(command)'",
      cause: problem.prefix(1).lowercased() + problem.dropFirst(), next: "run: \(command) --help")
  }
}
