import SwiftParser
import SwiftSyntax

/// The sources of a module, with what the macros of its models stand for written into them.
///
/// The compiler asks the macros about each class and each property by themselves, and reads each answer as a source
/// file of its own. For a large plan that takes more than half of the build. So `instarctl plugin build` has the macros
/// expanded before the compiler reads the sources.
///
/// - The author's tokens keep their lines and columns, except that a `}`, or a literal after a name without a type, can
///   be further right. So what the compiler says about them is what it says about the sources as they are.
/// - Each line that differs has a form feed, which the compiler reads as a space. A message that shows such a line is
///   not the one that the author has to see.
/// - The description of a property has a key path only if the sources may contain one: without the macros this is most
///   of what the compiler works on. It has a setter only if they may assign it.
/// - A class keeps its macros where they have anything to report, and where syntax does not show what the compiler
///   would pass to them.
public enum SourceExpansion {
  /// The form feed in each line that differs from the source.
  static let mark: UInt8 = 0x0C

  /// Returns the text of each source with its models expanded; `nil` for one that stays as it is.
  public static func expansions(of sources: [[UInt8]]) -> [[UInt8]?] {
    let files = sources.map { bytes in bytes.withUnsafeBufferPointer { Parser.parse(source: $0) } }
    // Names that the sources declare themselves do not stand for the SDK's macros and modules.
    let declared = DeclaredTypes(in: files)
    guard !files.contains(where: \.hasError), !InverseReferences(in: files).mayBeCircular,
      !["Model", "PersistentModel", "Swift", "Instar", "InstarModel", "InstarSchema"]
        .contains(where: declared.contains)
    else { return sources.map { _ in nil } }
    let keyPathNames = KeyPathNames(in: files)
    let assignedNames = AssignedNames(in: files)
    return zip(sources, files).map { source, file in
      guard !source.contains(mark) else { return nil }
      let finder = ModelFinder(viewMode: .sourceAccurate)
      finder.walk(file)
      let edits = finder.models.compactMap {
        ExpandedModel(
          $0, declared: declared, keyPathNames: keyPathNames, assignedNames: assignedNames)?.edits
      }
      return edits.isEmpty ? nil : apply(edits.flatMap(\.self), to: source)
    }
  }

  private static func apply(_ edits: [SourceEdit], to source: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var position = 0
    // Stable: what is inserted at one place keeps its order.
    for edit in edits.enumerated().sorted(by: {
      ($0.element.range.lowerBound, $0.offset) < ($1.element.range.lowerBound, $1.offset)
    }).map(\.element) {
      result += source[position..<edit.range.lowerBound]
      position = edit.range.upperBound
      result += source[edit.range].map { [0x0A, 0x0D].contains($0) ? $0 : mark }
      if !edit.insertion.isEmpty {
        result.append(mark)
        result += edit.insertion.utf8
      }
    }
    return result + source[position...]
  }
}

/// A change of a source that keeps its lines.
struct SourceEdit {
  /// The bytes that become spaces. Empty for an insertion.
  var range: Range<Int>
  var insertion = ""

  static func blank(_ node: some SyntaxProtocol) -> SourceEdit {
    let range = node.trimmedRange
    return SourceEdit(range: range.lowerBound.utf8Offset..<range.upperBound.utf8Offset)
  }

  static func insert(_ text: String, after token: TokenSyntax) -> SourceEdit {
    let end = token.endPositionBeforeTrailingTrivia.utf8Offset
    return SourceEdit(range: end..<end, insertion: text)
  }

  static func insert(_ text: String, before token: TokenSyntax) -> SourceEdit {
    let start = token.positionAfterSkippingLeadingTrivia.utf8Offset
    return SourceEdit(range: start..<start, insertion: text)
  }
}

private final class ModelFinder: SyntaxVisitor {
  private(set) var models: [ClassDeclSyntax] = []

  override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind {
    if node.attributes.contains(named: "Model") { models.append(node) }
    return .visitChildren
  }

  // A local class cannot have a macro that extends it.
  override func visit(_ node: CodeBlockSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: ClosureExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: AccessorBlockSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
}
