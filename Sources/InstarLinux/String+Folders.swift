extension String {
  /// Whether an absolute path is somewhere below a folder, by the paths alone. A folder is not below itself.
  package func isBelow(_ folder: String) -> Bool {
    folder == "/" ? hasPrefix("/") && self != "/" : hasPrefix(folder + "/")
  }
}
