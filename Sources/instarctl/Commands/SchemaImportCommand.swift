import ArgumentParser
import Foundation
import InstarSchema
import InstarSource
import InstarWire

/// `instarctl schema import`
struct SchemaImportCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Writes the Swift source of a store's models.",
    discussion: """
      The source is a VersionedSchema with its @Model classes that reproduces the store: compiled, it \
      has the store's structure. It is the version to start from where an app's models were never \
      kept by version. Everything is taken from the model that the store carries, or from the schema \
      that Instar wrote there; of a store without either, from its tables. What a schema cannot say is told in comments and on standard error.
      """)

  @Argument(help: "The store.", completion: .file(), transform: FilePath.typed)
  var store: String

  @Option(
    help: ArgumentHelp(
      "The name of the VersionedSchema. (default: after the file and the version)",
      valueName: "name"),
    transform: {
      guard SwiftName.isIdentifier($0) else {
        throw ValidationError("'\($0)' cannot be the name of a type")
      }
      return $0
    })
  var name: String?

  @Option(
    name: .customLong("version"),
    help: ArgumentHelp(
      "The version of the schema. (default: the one that the store declares, else 1.0.0)",
      valueName: "version"),
    transform: Schema.Version.typed)
  var version: Schema.Version?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file to write. (default: standard output)", valueName: "file.swift"),
    completion: .file(extensions: ["swift"]), transform: FilePath.typed)
  var file: String?

  @Flag(help: "Replace the file if there is one.")
  var force = false

  @OptionGroup var output: OutputOptions

  private struct ImportedSchema: Answer {
    var store: String
    var name: String
    var version: Schema.Version
    var fingerprint: String
    var origin: SchemaReport.Origin
    /// Left out where it went to a file.
    var source: String?
    var file: String?
    var notes: [String]

    var lines: [ConsoleLine] {
      if let file { return ["'\(file)' is written"] }
      return ConsoleLine.lines(of: source ?? "")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let path = FilePath.absolute(store)
    let report = try await SchemaReader().report(of: path)
    var schema = report.schema
    if let version { schema.version = version }
    let stem = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
    let name = name ?? VersionName.type("\(SwiftName.type(stem))Schema", schema.version)
    let source = VersionedSchemaSource(
      schema, name: name,
      comment: "The models of '\(URL(fileURLWithPath: path).lastPathComponent)', "
        + "as 'instarctl schema import' read them off \(report.origin.sentencePart).",
      composites: .init(
        enumerations: Set(report.enumerations), required: Set(report.requiredComposites)),
      notes: report.notes, comments: report.comments)
    var answer = ImportedSchema(
      store: path, name: name, version: schema.version, fingerprint: report.fingerprint,
      origin: report.origin, notes: source.notes)
    if let file {
      let target = FilePath.absolute(file)
      if force {
        _ = try OutputFile.replace(target, by: source.text)
      } else {
        try OutputFile.make(target, source.text)
      }
      answer.file = target
    } else {
      answer.source = source.text
    }
    output.write(answer)
    if !output.json { Console.note(source.notes.map { "note: \($0)" }) }
    return .done
  }
}

extension SchemaReport.Origin {
  fileprivate var sentencePart: String {
    switch self {
    case .modelCache: "the model in the store"
    case .metadata: "the schema in the store"
    case .tables: "its tables"
    }
  }
}

extension SchemaReport {
  /// What stands above properties whose type in the app cannot be known.
  fileprivate var comments: [String: String] {
    var comments: [String: String] = [:]
    for entity in schema.entities {
      for attribute in entity.attributes {
        let path = "\(entity.name).\(attribute.name)"
        if enumerations.contains(path) {
          comments[path] = "In the app an enum with this raw value."
        } else if attribute.isTransformable {
          comments[path] =
            "In the app a value of another type: these are the bytes that its transformer made."
        }
      }
    }
    return comments
  }
}
