internal import InstarSchema

extension Schema {
  /// The error for models that a format cannot store.
  func invalid(_ cause: String, next: String? = nil) -> InstarError {
    InstarError(.invalidModel, "cannot lay out schema \(version)", cause: cause, next: next)
  }

  /// The error for a model that others name.
  ///
  /// - Parameter user: The model or property that names it.
  func missing(_ name: String, usedBy user: String) -> InstarError {
    InstarError(
      .incompleteSchema, "cannot lay out schema \(version)",
      cause: "\(name) is used by \(user), but is missing from the models of \(version)",
      next: "add \(name).self to the models of version \(version)")
  }
}
