public import Foundation

// The attributes for Markdown, which Foundation has on Apple's platforms only. Names, members and raw values are
// those of its documentation.

/// How to show a part of a paragraph.
public struct InlinePresentationIntent: OptionSet, Hashable, Codable, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// `*text*`
  public static let emphasized = InlinePresentationIntent(rawValue: 1 << 0)
  /// `**text**`
  public static let stronglyEmphasized = InlinePresentationIntent(rawValue: 1 << 1)
  /// Text between backticks.
  public static let code = InlinePresentationIntent(rawValue: 1 << 2)
  /// Strikethrough. Reading Markdown never sets it, because CommonMark has no such syntax.
  public static let strikethrough = InlinePresentationIntent(rawValue: 1 << 5)
  /// A line end in the source that need not be shown.
  public static let softBreak = InlinePresentationIntent(rawValue: 1 << 6)
  /// A line end that must be shown.
  public static let lineBreak = InlinePresentationIntent(rawValue: 1 << 7)
  /// HTML inside a paragraph.
  public static let inlineHTML = InlinePresentationIntent(rawValue: 1 << 8)
  /// HTML in separate lines.
  public static let blockHTML = InlinePresentationIntent(rawValue: 1 << 9)
}

/// The block of a text, and the blocks around it.
public struct PresentationIntent: Hashable, Codable, Sendable {
  /// The kind of a block.
  public enum Kind: Hashable, Codable, Sendable {
    case paragraph
    case header(level: Int)
    case orderedList
    case unorderedList
    case listItem(ordinal: Int)
    case codeBlock(languageHint: String?)
    case blockQuote
    case thematicBreak
    case table(columns: [TableColumn])
    case tableHeaderRow
    case tableRow(rowIndex: Int)
    case tableCell(columnIndex: Int)
  }

  /// A column of a table.
  public struct TableColumn: Hashable, Codable, Sendable {
    /// The alignment of a column's text.
    public enum Alignment: Int, Hashable, Codable, Sendable { case left, center, right }

    public var alignment: Alignment

    public init(alignment: Alignment) { self.alignment = alignment }
  }

  /// One block.
  public struct IntentType: Hashable, Codable, Sendable {
    public var kind: Kind
    /// The number of the block, unique within its text.
    public var identity: Int

    public init(kind: Kind, identity: Int) {
      self.kind = kind
      self.identity = identity
    }
  }

  /// The blocks, the innermost first.
  public var components: [IntentType]

  /// Creates a block inside `parent`.
  public init(_ kind: Kind, identity: Int, parent: PresentationIntent? = nil) {
    components = [IntentType(kind: kind, identity: identity)] + (parent?.components ?? [])
  }

  /// How many of the blocks are indented: lists and quotes.
  public var indentationLevel: Int {
    components.count { component in
      switch component.kind {
      case .orderedList, .unorderedList, .blockQuote: true
      default: false
      }
    }
  }
}

extension AttributeScopes.FoundationAttributes {
  /// The attribute behind `inlinePresentationIntent`.
  @frozen
  public enum InlinePresentationIntentAttribute: CodableAttributedStringKey {
    public typealias Value = InlinePresentationIntent
    public static let name = "NSInlinePresentationIntent"
  }

  /// The attribute behind `presentationIntent`.
  @frozen
  public enum PresentationIntentAttribute: CodableAttributedStringKey {
    public typealias Value = PresentationIntent
    public static let name = "NSPresentationIntent"
  }

  /// How to show a part of a paragraph. Code only names this member in a key path and never reads it.
  public var inlinePresentationIntent: InlinePresentationIntentAttribute {
    fatalError("a member of an attribute scope has no value")
  }

  /// The block of a text. Code only names this member in a key path and never reads it.
  public var presentationIntent: PresentationIntentAttribute {
    fatalError("a member of an attribute scope has no value")
  }
}
