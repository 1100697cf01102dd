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
      let found = swiftFiles(below: sourcesFolder(of: path))
      guard !found.isEmpty else {
        throw failure(
          "the folder '\(source)' contains no Swift file",
          "pass the folder that contains the sources")
      }
      files += found
    }
    return files
  }

  /// The folder with the sources of a plugin. Of a package it is `Sources`, because manifest, tests and tools are not
  /// part of the plugin.
  static func sourcesFolder(of folder: String) -> String {
    FileManager.default.fileExists(atPath: folder + "/Package.swift")
      ? folder + "/Sources" : folder
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
