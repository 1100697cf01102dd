#if !canImport(ObjectiveC)
  /// Runs `body`.
  ///
  /// On Apple's platforms it also releases the objects of Objective-C that `body` made, and stages of plans use it in
  /// loops over many models. Here there are none: Swift releases each object after its last use.
  public func autoreleasepool<Result>(
    invoking body: () throws -> Result
  ) rethrows -> Result {
    try body()
  }
#endif
