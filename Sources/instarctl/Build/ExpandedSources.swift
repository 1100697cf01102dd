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
  ///   - folder: Gets the expanded files. One whose text stays the same keeps its time.
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
    let files = sources.map { "\(folder)\($0)" }
    do {
      for file in files {
        try FileManager.default.createDirectory(
          at: URL(fileURLWithPath: file).deletingLastPathComponent(),
          withIntermediateDirectories: true)
      }
    } catch {
      return nil
    }
    guard try expand(["expand"] + zip(sources, files).flatMap { [$0, $1] }) else { return nil }
    self.files = Dictionary(uniqueKeysWithValues: zip(sources, files)).filter {
      FileManager.default.fileExists(atPath: $0.value)
    }
    guard write(self.files) else { return nil }
  }

  func file(of source: String) -> String? { files[source] }

  /// With which the compiler reads the expanded files in place of the sources.
  var arguments: [String] { files.isEmpty ? [] : ["-vfsoverlay", overlay] }

  /// Has a compiler with the same arguments read the sources themselves. With other arguments it would compile all
  /// files again.
  ///
  /// - Returns: `false` if the file that says so cannot be written.
  func withdraw() -> Bool { write([:]) }

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

  /// Whether the compiler would say something else about the sources themselves: it failed, or shows a line that
  /// differs.
  func differs(_ termination: ChildProcess.Termination?, _ compilerOutput: String) -> Bool {
    !files.isEmpty && (termination != .exited(0) || compilerOutput.utf8.contains(0x0C))
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
