public import Foundation
import InstarSchema

extension AttributedString {
  /// Options for reading Markdown.
  public struct MarkdownParsingOptions: Sendable {
    /// Which part of Markdown's syntax is interpreted.
    public enum InterpretedSyntax: Int, Sendable {
      /// All of CommonMark. The text has no line ends between blocks; `presentationIntent` separates them.
      case full
      /// Inline syntax only. Block syntax is text, and a run of white space becomes one blank.
      case inlineOnly
      /// Inline syntax only. Block syntax is text, and white space is kept.
      case inlineOnlyPreservingWhitespace
    }

    /// What to do with invalid Markdown. It has no effect, because every text is valid CommonMark.
    public enum FailurePolicy: Int, Sendable {
      case throwError
      case returnPartiallyParsedIfPossible
    }

    /// Has no effect: `^[text](attributes)` is not CommonMark and stays text.
    public var allowsExtendedAttributes: Bool
    public var interpretedSyntax: InterpretedSyntax
    public var failurePolicy: FailurePolicy
    /// The language of the text, such as "de", which sets `languageIdentifier` of the whole text.
    public var languageCode: String?
    /// Has no effect: positions in the source are not kept.
    public var appliesSourcePositionAttributes: Bool

    public init(
      allowsExtendedAttributes: Bool = false, interpretedSyntax: InterpretedSyntax = .full,
      failurePolicy: FailurePolicy = .throwError, languageCode: String? = nil,
      appliesSourcePositionAttributes: Bool = false
    ) {
      self.allowsExtendedAttributes = allowsExtendedAttributes
      self.interpretedSyntax = interpretedSyntax
      self.failurePolicy = failurePolicy
      self.languageCode = languageCode
      self.appliesSourcePositionAttributes = appliesSourcePositionAttributes
    }
  }

  /// Creates a text from Markdown, with emphasis, links, images and blocks as attributes.
  ///
  /// ```swift
  /// let text = try AttributedString(markdown: "See *here*: [site](https://example.org)")
  /// // "See here: site"; "here" is emphasized, "site" has a link
  /// ```
  ///
  /// It reads CommonMark with libcmark. GitHub's additions (tables, strikethrough) stay text.
  ///
  /// - Parameter baseURL: The base of relative links.
  /// - Throws: `InstarError` with code `unsupported` if libcmark is not installed.
  public init(
    markdown: String, options: MarkdownParsingOptions = MarkdownParsingOptions(),
    baseURL: URL? = nil
  ) throws {
    var reading = MarkdownReading(library: try CommonMark.loaded(), baseURL: baseURL)
    switch options.interpretedSyntax {
    case .full: reading.readBlocks(of: markdown)
    case .inlineOnly: reading.readLine(markdown, keepingWhiteSpace: false)
    case .inlineOnlyPreservingWhitespace: reading.readLine(markdown, keepingWhiteSpace: true)
    }
    self = reading.result
    if let languageCode = options.languageCode { self.languageIdentifier = languageCode }
  }

  /// Creates a text from Markdown in UTF-8.
  ///
  /// - Throws: The errors of `init(markdown:options:baseURL:)` with a string.
  public init(
    markdown: Data, options: MarkdownParsingOptions = MarkdownParsingOptions(), baseURL: URL? = nil
  ) throws {
    try self.init(
      markdown: String(decoding: markdown, as: UTF8.self), options: options, baseURL: baseURL)
  }

  /// Creates a text from the Markdown in a file.
  ///
  /// - Throws: The errors of `init(markdown:options:baseURL:)` with a string, and errors of reading the file.
  public init(
    contentsOf url: URL, options: MarkdownParsingOptions = MarkdownParsingOptions(),
    baseURL: URL? = nil
  ) throws {
    try self.init(markdown: Data(contentsOf: url), options: options, baseURL: baseURL)
  }
}

/// Converts a document of libcmark to a text.
private struct MarkdownReading {
  let library: CommonMark
  let baseURL: URL?
  private(set) var result = AttributedString()
  private var lastIdentity = 0

  init(library: CommonMark, baseURL: URL?) {
    self.library = library
    self.baseURL = baseURL
  }

  private mutating func read(_ markdown: String, _ body: (inout Self, CommonMark.Node) -> Void) {
    var markdown = markdown
    let document = markdown.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { library.parse($0.baseAddress, $0.count, 0) }
    }
    guard let document else { return }
    defer { library.free(document) }
    body(&self, document)
  }

  mutating func readBlocks(of markdown: String) {
    read(markdown) { reading, document in
      for block in reading.library.children(of: document) {
        reading.add(block: block, in: nil, depth: 0)
      }
    }
  }

  /// Reads Markdown as a heading of one line, in which block syntax has no effect. A white space character that the
  /// text does not contain replaces its line ends, and protects blanks at both ends, which a heading would lose.
  mutating func readLine(_ markdown: String, keepingWhiteSpace: Bool) {
    let stand = "\u{205F}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2008}\u{2009}"
    guard
      let guardScalar = stand.unicodeScalars.first(where: { !markdown.unicodeScalars.contains($0) })
    else { return }
    let mark = String(guardScalar)
    let lines = markdown.split(omittingEmptySubsequences: false) { $0.isNewline }
    read("# \(mark)\(lines.joined(separator: mark))\(mark)") { reading, document in
      for block in reading.library.children(of: document) {
        for node in reading.library.children(of: block) {
          reading.add(inline: node, AttributeContainer(), [], depth: 0)
        }
      }
    }
    var text = AttributedString()
    var wasBlank = false
    for run in result.runs {
      var part = String(String.UnicodeScalarView(result.unicodeScalars[run.range]))
        .replacing(mark, with: "\n")
      if !keepingWhiteSpace {
        var kept = ""
        for character in part {
          let isBlank = character.isWhitespace
          if !isBlank || !wasBlank { kept.append(isBlank ? " " : character) }
          wasBlank = isBlank
        }
        part = kept
      }
      text.append(AttributedString(part, attributes: run.attributes))
    }
    // Removes the characters that protected both ends.
    if text.characters.first?.isWhitespace == true { text.characters.removeFirst() }
    if text.characters.last?.isWhitespace == true { text.characters.removeLast() }
    result = text
  }

  // MARK: Blocks

  /// Deeper nesting than this, which only a hostile text has, is left out: each level takes some of the stack.
  private static let depthLimit = 100

  private mutating func add(block: CommonMark.Node, in parent: PresentationIntent?, depth: Int) {
    guard depth < Self.depthLimit else { return }
    let type = library.type(of: block)
    func intent(_ kind: PresentationIntent.Kind, _ reading: inout Self) -> PresentationIntent {
      reading.lastIdentity += 1
      return PresentationIntent(kind, identity: reading.lastIdentity, parent: parent)
    }
    switch type {
    case "block_quote": addChildren(of: block, in: intent(.blockQuote, &self), depth)
    case "list":
      let isOrdered = library.listType(block) == 2
      let list = intent(isOrdered ? .orderedList : .unorderedList, &self)
      let start = isOrdered ? Int(library.listStart(block)) : 1
      for (offset, item) in library.children(of: block).enumerated() {
        lastIdentity += 1
        addChildren(
          of: item,
          in: PresentationIntent(
            .listItem(ordinal: start + offset), identity: lastIdentity, parent: list), depth + 1)
      }
    case "code_block":
      let info = library.fenceInfo(block).map { String(cString: $0) } ?? ""
      let language = info.split(separator: " ").first.map(String.init)
      append(library.text(of: block), intent(.codeBlock(languageHint: language), &self))
    case "html_block":
      var attributes = AttributeContainer()
      attributes.presentationIntent = intent(.paragraph, &self)
      attributes.inlinePresentationIntent = .blockHTML
      result.append(AttributedString(library.text(of: block), attributes: attributes))
    case "thematic_break": append("⸻", intent(.thematicBreak, &self))
    case "heading":
      addInlines(of: block, intent(.header(level: Int(library.headingLevel(block))), &self))
    case "paragraph": addInlines(of: block, intent(.paragraph, &self))
    default: addChildren(of: block, in: parent, depth)
    }
  }

  private mutating func addChildren(
    of block: CommonMark.Node, in parent: PresentationIntent?, _ depth: Int
  ) {
    for child in library.children(of: block) { add(block: child, in: parent, depth: depth + 1) }
  }

  private mutating func addInlines(of block: CommonMark.Node, _ intent: PresentationIntent) {
    var attributes = AttributeContainer()
    attributes.presentationIntent = intent
    for node in library.children(of: block) { add(inline: node, attributes, [], depth: 0) }
  }

  private mutating func append(_ text: String, _ intent: PresentationIntent) {
    var attributes = AttributeContainer()
    attributes.presentationIntent = intent
    result.append(AttributedString(text, attributes: attributes))
  }

  // MARK: Inlines

  private mutating func addInlineChildren(
    of node: CommonMark.Node, _ attributes: AttributeContainer,
    _ intent: InlinePresentationIntent, _ depth: Int
  ) {
    for child in library.children(of: node) {
      add(inline: child, attributes, intent, depth: depth + 1)
    }
  }

  private mutating func append(
    _ text: String, _ attributes: AttributeContainer, _ intent: InlinePresentationIntent
  ) {
    var attributes = attributes
    if !intent.isEmpty { attributes.inlinePresentationIntent = intent }
    result.append(AttributedString(text, attributes: attributes))
  }

  private mutating func add(
    inline node: CommonMark.Node, _ attributes: AttributeContainer,
    _ intent: InlinePresentationIntent, depth: Int
  ) {
    guard depth < Self.depthLimit else { return }
    var attributes = attributes
    let text = library.text(of: node)
    switch library.type(of: node) {
    case "text": append(text, attributes, intent)
    case "code": append(text, attributes, intent.union(.code))
    case "html_inline": append(text, attributes, intent.union(.inlineHTML))
    case "softbreak": append(" ", attributes, intent.union(.softBreak))
    case "linebreak": append("\n", attributes, intent.union(.lineBreak))
    case "emph": addInlineChildren(of: node, attributes, intent.union(.emphasized), depth)
    case "strong": addInlineChildren(of: node, attributes, intent.union(.stronglyEmphasized), depth)
    case "link":
      attributes.link = url(of: node)
      addInlineChildren(of: node, attributes, intent, depth)
    case "image":
      attributes.imageURL = url(of: node)
      addInlineChildren(of: node, attributes, intent, depth)
    default: addInlineChildren(of: node, attributes, intent, depth)
    }
  }

  private func url(of node: CommonMark.Node) -> URL? {
    library.address(node).flatMap { URL(string: String(cString: $0), relativeTo: baseURL) }
  }
}
