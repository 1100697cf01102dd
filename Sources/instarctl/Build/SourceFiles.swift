import Foundation
import InstarSchema

/// The Swift files that a command compiles.
enum SourceFiles {
  /// Returns the files, and those in the folders, each as an absolute path.
  ///
  /// - Parameter failure: Makes the command's error of a cause and advice.
  /// - Throws: This error; with the code `missingFile` if a source does not exist.
  static func files(
    of sources: [String], failure: (String, String) -> InstarError
  ) throws(InstarError) -> [String] {
    var files: [String] = []
    for source in sources {
      let path = FilePath.absolute(source)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
        var error = failure("the source '\(source)' does not exist", FilePath.advice(on: path))
        error.code = .missingFile
        throw error
      }
      guard isFolder.boolValue else {
        files.append(path)
        continue
      }
      let root = sourcesFolder(of: path)
      let tests = "\(path)/\(testsFolder)/"
      let found = swiftFiles(below: root).filter { root != path || !$0.hasPrefix(tests) }
      guard !found.isEmpty else {
        throw failure(
          "the folder '\(source)' contains no Swift file",
          "pass the folder that contains the sources")
      }
      files += found
    }
    return files
  }

  /// The folder in that of a plugin that has its tests.
  static let testsFolder = "Tests"

  /// The folder with the sources of a plugin: `Sources`, as in a package, because manifest, tests and tools are not
  /// part of the plugin; or the folder itself, without its tests.
  static func sourcesFolder(of folder: String) -> String {
    let sources = folder + "/Sources"
    return ["/Package.swift", "/Sources"].contains {
      FileManager.default.fileExists(atPath: folder + $0)
    } ? sources : folder
  }

  /// Returns the Swift files in a folder, ordered by path.
  static func swiftFiles(below folder: String) -> [String] {
    let entries = FileManager.default.enumerator(
      at: URL(fileURLWithPath: folder, isDirectory: true), includingPropertiesForKeys: nil,
      options: [.skipsHiddenFiles])
    var files: [String] = []
    while let file = entries?.nextObject() as? URL {
      if file.pathExtension == "swift" { files.append(file.path) }
    }
    return files.sorted()
  }
}
