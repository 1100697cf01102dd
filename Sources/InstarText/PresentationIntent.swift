public import Foundation

// The attributes that Markdown becomes. Foundation has them on Apple's platforms only; names, members and raw values are
// those of its documentation.

/// How words of a paragraph are meant to be shown.
public struct InlinePresentationIntent: OptionSet, Hashable, Codable, Sendable {
  public let rawValue: UInt

  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// `*text*`
  public static let emphasized = InlinePresentationIntent(rawValue: 1 << 0)
  /// `**text**`
  public static let stronglyEmphasized = InlinePresentationIntent(rawValue: 1 << 1)
  /// Text between backticks.
  public static let code = InlinePresentationIntent(rawValue: 1 << 2)
  /// Never made of Markdown here: CommonMark has no such syntax.
  public static let strikethrough = InlinePresentationIntent(rawValue: 1 << 5)
  /// A line ended in the source, but need not be shown so.
  public static let softBreak = InlinePresentationIntent(rawValue: 1 << 6)
  /// The line ends here.
  public static let lineBreak = InlinePresentationIntent(rawValue: 1 << 7)
  /// HTML among words.
  public static let inlineHTML = InlinePresentationIntent(rawValue: 1 << 8)
  /// HTML in lines of its own.
  public static let blockHTML = InlinePresentationIntent(rawValue: 1 << 9)
}

/// The block that a text stands in, and the blocks around that one.
public struct PresentationIntent: Hashable, Codable, Sendable {
  /// What a block is.
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
    /// Where the text of a column stands.
    public enum Alignment: Int, Hashable, Codable, Sendable { case left, center, right }

    public var alignment: Alignment

    public init(alignment: Alignment) { self.alignment = alignment }
  }

  /// One block.
  public struct IntentType: Hashable, Codable, Sendable {
    public var kind: Kind
    /// Tells the block from all others of its text.
    public var identity: Int

    public init(kind: Kind, identity: Int) {
      self.kind = kind
      self.identity = identity
    }
  }

  /// The blocks, the innermost first.
  public var components: [IntentType]

  /// A block, within `parent` where there is one.
  public init(_ kind: Kind, identity: Int, parent: PresentationIntent? = nil) {
    components = [IntentType(kind: kind, identity: identity)] + (parent?.components ?? [])
  }

  /// How many of the blocks are shown indented: lists and quotes.
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

  /// How words are meant to be shown. A member of a scope is named by its path, and never read.
  public var inlinePresentationIntent: InlinePresentationIntentAttribute {
    fatalError("a member of an attribute scope has no value")
  }

  /// The block that a text stands in. A member of a scope is named by its path, and never read.
  public var presentationIntent: PresentationIntentAttribute {
    fatalError("a member of an attribute scope has no value")
  }
}
