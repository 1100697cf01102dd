import Foundation
import InstarSchema
import InstarText
import Testing

@Suite("Texts with attributes")
struct AttributedTextTests {
  private enum CustomAttribute: CodableAttributedStringKey {
    typealias Value = Int
    static let name = "com.example.custom"
  }

  private func coded(_ text: AttributedString) throws -> AttributedString {
    try JSONDecoder().decode(AttributedString.self, from: JSONEncoder().encode(text))
  }

  @Test("every attribute of Foundation's, and those of Markdown, are read back as they were stored")
  func allAttributes() throws {
    var container = AttributeContainer()
    container.link = URL(string: "https://example.org/ü?a=b")
    container.languageIdentifier = "de"
    container.inlinePresentationIntent = [.code, .strikethrough]
    container.presentationIntent = PresentationIntent(
      .tableCell(columnIndex: 1), identity: 3,
      parent: PresentationIntent(
        .table(columns: [PresentationIntent.TableColumn(alignment: .right)]), identity: 1))
    container.alternateDescription = "a picture"
    container.imageURL = URL(string: "a.png", relativeTo: URL(string: "https://example.org/b/"))
    container.personNameComponent = .familyName
    container.replacementIndex = 2
    container.numberPart = .fraction
    container.numberSymbol = .decimalSeparator
    container.dateField = .month
    container.measurement = .unit
    container.byteCount = .value
    container.durationField = .minutes
    container.writingDirection = .rightToLeft
    var text = AttributedString("plain, ")
    text += AttributedString("all", attributes: container)
    #expect(try coded(text) == text)
  }

  @Test("every value of the attributes that Foundation has here is read back as it was stored")
  func allValues() throws {
    var text = AttributedString("plain")
    func add<Value>(_ path: WritableKeyPath<AttributeContainer, Value?>, _ values: [Value]) {
      for value in values {
        var container = AttributeContainer()
        container[keyPath: path] = value
        text += AttributedString("x", attributes: container)
      }
    }
    add(
      \.personNameComponent,
      [.givenName, .familyName, .middleName, .namePrefix, .nameSuffix, .nickname, .delimiter])
    add(\.numberPart, [.integer, .fraction])
    add(\.numberSymbol, [.groupingSeparator, .sign, .decimalSeparator, .currency, .percent])
    add(
      \.dateField,
      [
        .era, .year, .relatedGregorianYear, .quarter, .month, .weekOfYear, .weekOfMonth, .weekday,
        .weekdayOrdinal, .day, .dayOfYear, .amPM, .hour, .minute, .second, .secondFraction,
        .timeZone,
      ])
    add(\.measurement, [.value, .unit])
    add(
      \.byteCount,
      [
        .value, .spelledOutValue, .actualByteCount, .unit(.byte), .unit(.kb), .unit(.mb),
        .unit(.gb), .unit(.tb), .unit(.pb), .unit(.eb), .unit(.zb), .unit(.yb),
      ])
    add(
      \.durationField,
      [
        .weeks, .days, .hours, .minutes, .seconds, .milliseconds, .microseconds, .nanoseconds,
      ])
    add(\.writingDirection, [.leftToRight, .rightToLeft])
    add(\.replacementIndex, [0, -1, .max])
    add(\.languageIdentifier, ["de", ""])
    add(\.alternateDescription, ["a picture", "", "\u{0}\u{1F600}"])
    let urls = ["https://example.org/ü?a=b", "", "a b", "#x"].compactMap { URL(string: $0) }
    add(\.link, urls + [URL(filePath: "/a/b", directoryHint: .isDirectory)])
    add(\.imageURL, ["a.png", "../b"].compactMap { URL(string: $0, relativeTo: urls.first) })

    #expect(try coded(text) == text)
  }

  @Test("runs that part a character are kept as they are")
  func runsWithinCharacters() throws {
    var text = AttributedString("e")
    text.replacementIndex = 1
    var accent = AttributedString("\u{301}x")
    accent.replacementIndex = 2
    text += accent
    let read = try coded(text)
    #expect(read == text && read.runs.count == 2)
  }

  @Test("the stored form is a JSON string, or an array of texts and attributes")
  func storedForm() throws {
    #expect(try JSONEncoder().encode(AttributedString("a")) == Data(#""a""#.utf8))
    var text = AttributedString("a")
    text += AttributedString("b", attributes: AttributeContainer().languageIdentifier("de"))
    #expect(try JSONEncoder().encode(text) == Data(#"["a",{},"b",{"NSLanguage":"de"}]"#.utf8))
  }

  @Test("an attribute of another scope is refused by name, not lost")
  func customAttribute() throws {
    var text = AttributedString("a")
    text[CustomAttribute.self] = 7
    let error = #expect(throws: InstarError.self) { try JSONEncoder().encode(text) }
    #expect(error?.cause.contains("'com.example.custom'") == true)
  }

  @Test("Markdown becomes words with intents, links and blocks")
  func markdown() throws {
    let text = try AttributedString(
      markdown: "# Title\n\nSome *words* and **strong `code`**, a [link](a.html)\nnext\n\n2. two",
      baseURL: URL(string: "https://example.org/b/"))
    #expect(String(text.characters) == "TitleSome words and strong code, a link nexttwo")
    func run(_ part: String) throws -> AttributedString.Runs.Run {
      try #require(text.runs.first { String(text[$0.range].characters) == part })
    }
    #expect(
      try run("Title").presentationIntent?.components.map(\.kind) == [.header(level: 1)])
    #expect(try run("words").inlinePresentationIntent == .emphasized)
    #expect(try run("code").inlinePresentationIntent == [.stronglyEmphasized, .code])
    #expect(try run("link").link?.absoluteString == "https://example.org/b/a.html")
    #expect(try run(" ").inlinePresentationIntent == .softBreak)
    let item = try run("two").presentationIntent?.components
    #expect(item?.map(\.kind) == [.paragraph, .listItem(ordinal: 2), .orderedList])
    #expect(try coded(text) == text)
  }

  @Test("Markdown of words only: marks of blocks are text, white space is kept or not")
  func inlineMarkdown() throws {
    let source = " # a\n\n- _b_  c \n"
    let kept = try AttributedString(
      markdown: source,
      options: AttributedString.MarkdownParsingOptions(
        interpretedSyntax: .inlineOnlyPreservingWhitespace))
    #expect(String(kept.characters) == " # a\n\n- b  c \n")
    #expect(kept.runs.contains { $0.inlinePresentationIntent == .emphasized })
    #expect(kept.runs.allSatisfy { $0.presentationIntent == nil })
    let joined = try AttributedString(
      markdown: source,
      options: AttributedString.MarkdownParsingOptions(
        interpretedSyntax: .inlineOnly, languageCode: "en"))
    #expect(String(joined.characters) == "# a - b c")
    #expect(joined.runs.allSatisfy { $0.languageIdentifier == "en" })
  }

  @Test("Markdown is read as data, and gives no text where it nests deeper than anyone writes")
  func otherMarkdown() throws {
    #expect(try AttributedString(markdown: Data("*a*".utf8)).characters.count == 1)
    let deep = String(repeating: "> ", count: 5_000) + "a"
    #expect(try AttributedString(markdown: deep).characters.isEmpty)
    #expect(try AttributedString(markdown: "").characters.isEmpty)
  }
}
