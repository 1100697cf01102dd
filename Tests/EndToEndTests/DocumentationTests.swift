import Foundation
import InstarTestSupport
import Testing

/// The articles and the README: every Swift block compiles as a reader would paste it, and every command runs.
@Suite("Documentation")
struct DocumentationTests {
  private static let catalog = "Sources/Instar/Instar.docc"
  private static let fixtures = CommandLineTool.repository
    .appendingPathComponent("Tests/Fixtures/Documentation")

  static let articles: [String] = {
    let folder = CommandLineTool.repository.appendingPathComponent(catalog)
    let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
    return (names ?? []).filter { $0.hasSuffix(".md") }.sorted().map { String($0.dropLast(3)) }
  }()

  /// The pages with Swift blocks. Where the commands of a page build its source, following the page compiles it. A
  /// scenario on a booted machine runs the commands of the README.
  static let compiledPages: [String] =
    articles.filter { article in
      let page = try? page(of: article)
      return page?.hasCommands != true && page?.source.isEmpty != true
    }.map { "\(catalog)/\($0).md" } + ["README.md"]

  static let followedArticles: [String] =
    articles.filter { (try? page(of: $0).hasCommands) == true }

  @Test("the Swift blocks of a page compile, as one file", arguments: compiledPages)
  func blocks(_ path: String) async throws {
    let source = try DocumentedPage(path).source
    let scratch = try TemporaryFolder()
    let file = scratch.path("Page.swift")
    try Data(source.utf8).write(to: URL(fileURLWithPath: file))
    let answer = try await SwiftCompiler.run(
      ["-typecheck", "-parse-as-library", "-module-name", "Page"], files: [file], languageMode: 5)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
  }

  @Test(
    "a reader can follow an article: each file, each command and what it prints",
    arguments: followedArticles)
  func followed(_ article: String) async throws {
    let page = try Self.page(of: article)
    let folder = try TemporaryFolder()
    let program = try await Self.preparation(of: article, page: page)
    if let program {
      let made = try await Program.run("env", ["--chdir=\(folder.path)", program])
      try #require(made.status == 0, Comment(rawValue: made.messages))
    }
    try await page.follow(in: folder)
    if let program {
      let checked = try await Program.run("env", ["--chdir=\(folder.path)", program, "check"])
      #expect(checked.status == 0, Comment(rawValue: checked.messages))
    }
  }

  /// 'plugin check' warns of plans that do.
  @Test(
    "no loop of a page has all rows of a model in memory",
    arguments: articles.map { "\(catalog)/\($0).md" } + [
      "README.md", "packaging/man/instar-plugin.7.man",
    ])
  func loops(_ path: String) throws {
    let page = CommandLineTool.repository.appendingPathComponent(path)
    let text = try String(contentsOf: page, encoding: .utf8)
    let found = text.matches(of: /(?:in|=) try \w+\.fetch\(FetchDescriptor<[\w.]+>\(\)\)\s/)
    #expect(found.map { String($0.0) } == [])
  }

  @Test("the articles that the landing page names are there, and it names all")
  func links() throws {
    let landing = try String(
      contentsOf: CommandLineTool.repository.appendingPathComponent("\(Self.catalog)/Instar.md"),
      encoding: .utf8)
    let names = landing.matches(of: /<doc:([A-Za-z]+)>/).map { String($0.1) }
    #expect(Set(names) == Set(Self.articles).subtracting(["Instar"]))
  }

  @Test("the pages of the package instar-doc link only to pages and sections that are there")
  func pages() async throws {
    let folder = try TemporaryFolder()
    let made = try await Program.run(
      CommandLineTool.repository.appendingPathComponent("packaging/documentation").path,
      [CommandLineTool.productsFolder.path, folder.path])
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let names =
      folder.names().filter { $0.hasSuffix(".html") }
      + folder.names("reference").map { "reference/\($0)" }
    #expect(names.contains("index.html") && names.contains("reference/ModelContext.html"))
    let texts = try Dictionary(
      uniqueKeysWithValues: names.map {
        ($0, try String(contentsOfFile: folder.path($0), encoding: .utf8))
      })
    // Those that the macros' messages name.
    let stricter = try #require(texts["FromSwiftDataToInstar.html"])
    for section in [
      "The-plugin", "Where-Instar-is-stricter", "If-changing-the-import-line-is-not-enough",
    ] {
      #expect(stricter.contains("id=\"\(section)\""))
    }
    for (name, text) in texts {
      // What Markdown left as it was: a link, a block of code, a heading of a declaration.
      for mark in ["<doc:", "&lt;doc:", "```", "<p>declaration:"] {
        #expect(!text.contains(mark), "\(name)")
      }
      for match in text.matches(of: /href="([^"#]*)(#[^"]*)?"/) where !match.1.contains("://") {
        let target =
          match.1.isEmpty
          ? name : String(match.1.replacing("../", with: name.contains("/") ? "" : "../"))
        let path =
          name.hasPrefix("reference/") && !match.1.hasPrefix("../") && !match.1.isEmpty
          ? "reference/\(target)" : target
        if path.hasSuffix(".css") {
          #expect(FileManager.default.fileExists(atPath: folder.path(path)))
          continue
        }
        let page = try #require(texts[path], "\(name): \(match.0)")
        if let section = match.2 {
          #expect(page.contains("id=\"\(section.dropFirst())\""), "\(name): \(match.0)")
        }
      }
    }
  }

  private static func page(of article: String) throws -> DocumentedPage {
    try DocumentedPage("\(catalog)/\(article).md")
  }

  /// Builds the program that makes the stores that an article assumes, and that checks them afterwards; `nil` for an
  /// article that makes its own stores.
  private static func preparation(of article: String, page: DocumentedPage) async throws -> String?
  {
    let source = fixtures.appendingPathComponent("\(article).swift")
    guard let text = try? String(contentsOf: source, encoding: .utf8) else { return nil }
    let folder = CommandLineTool.productsFolder.appendingPathComponent(
      "EndToEndTests.documentation")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let sources = try TemporaryFolder()
    try page.writeSources(in: sources)
    let line = try #require(text.prefixMatch(of: /\/\/ Compiled with: (.*)\n/))
    let files = line.1.split(separator: " ").map { sources.path(String($0)) }
    let program = folder.appendingPathComponent(article).path
    let answer = try await SwiftCompiler.link(
      files + [source.path], output: program, languageMode: 5, options: ["-parse-as-library"])
    guard answer.status == 0 else { throw DocumentedPage.Failure(description: answer.messages) }
    return program
  }
}
