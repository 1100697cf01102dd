import Foundation
import InstarLinux
import InstarSchema

/// The sources of a plugin with the macros of their models expanded by `InstarMacros-tool`, for the compiler to read in
/// place of the sources.
///
/// The compiler itself would need more than half of a large build for these macros. It reads the expanded text under
/// the name of the source, so the program and all messages name the source. `SourceExpansion` of the tool says what
/// else stays as it is.
struct ExpandedSources {
  private let overlay: String
  /// The expanded file of each source that has one.
  private let files: [String: String]

  /// Expands the sources.
  ///
  /// - Parameters:
  ///   - sources: Absolute paths.
  ///   - folder: Is made, and gets the expanded files.
  ///   - expand: Runs the tool with these arguments, and returns whether it succeeded.
  /// - Returns: `nil` if a source cannot be read, or a file in the folder cannot be written. The compiler then reads
  ///   the sources themselves, and reports what is wrong with them.
  /// - Throws: What `expand` throws.
  init?(
    of sources: [String], in folder: String,
    expand: (_ arguments: [String]) throws(InstarError) -> Bool
  ) throws(InstarError) {
    overlay = "\(folder)/overlay.json"
    let sources = Set(sources).sorted()
    // Not the names of the sources: with enough `..` a path would lead out of the folder, even to the source itself.
    let files = sources.indices.map { "\(folder)/\($0).swift" }
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    } catch {
      // The compiler reads the sources.
      return nil
    }
    guard try expand(["expand"] + zip(sources, files).flatMap { [$0, $1] }) else { return nil }
    self.files = Dictionary(uniqueKeysWithValues: zip(sources, files)).filter {
      FileManager.default.fileExists(atPath: $0.value)
    }
    guard write(self.files) else { return nil }
  }

  /// The expanded text of a source; `nil` for one that stays as it is.
  func text(of source: String) -> Data? {
    files[source].flatMap { FileManager.default.contents(atPath: $0) }
  }

  /// With which the compiler reads the expanded files in place of the sources.
  var arguments: [String] { files.isEmpty ? [] : ["-vfsoverlay", overlay] }

  /// - Returns: `false` if the description of the files cannot be written. The compiler then reads the sources.
  private func write(_ files: [String: String]) -> Bool {
    let roots = files.sorted { $0.key < $1.key }.map { source, file in
      Overlay.Root(type: "file", name: source, externalContents: file)
    }
    do {
      let content = try JSONEncoder().encode(Overlay(roots: roots))
      try content.write(to: URL(fileURLWithPath: overlay))
      return true
    } catch {
      return false
    }
  }

  /// Whether the compiler would say something else about the sources themselves: it failed, although it has a linker,
  /// or shows a line that differs.
  func differs(_ termination: ChildProcess.Termination?, _ compilerOutput: String) -> Bool {
    guard !files.isEmpty, LinkerMessages(compilerOutput: compilerOutput) == nil else {
      return false
    }
    return termination != .exited(0) || compilerOutput.utf8.contains(0x0C)
  }

  /// A description of files for `-vfsoverlay`, which is Clang's format.
  private struct Overlay: Encodable {
    struct Root: Encodable {
      var type: String
      var name: String
      var externalContents: String

      enum CodingKeys: String, CodingKey {
        case type, name
        case externalContents = "external-contents"
      }
    }

    var version = 0
    var caseSensitive = "true"
    /// The compiler names the source, not the expanded file.
    var useExternalNames = "false"
    var roots: [Root]

    enum CodingKeys: String, CodingKey {
      case version, roots
      case caseSensitive = "case-sensitive"
      case useExternalNames = "use-external-names"
    }
  }
}
