import Foundation
import InstarSchema
import InstarSource
import InstarSupervisor
import InstarWire

extension PluginTemplate {
  /// A plugin whose first versions are those of stores, and whose last one adds a property to the last of these.
  ///
  /// Stores that declare a version are ordered by it. One that declares none gets the major version after the store
  /// that was named before it, or 1.0.0.
  ///
  /// - Returns: The template, and what the schemas of the stores do not show, one sentence each.
  /// - Throws: The errors of reading a store; `invalidPlan` if two stores declare the same version, or if the change
  ///   from one to the next needs code that only the author can write.
  static func imported(
    name: String, from paths: [String], buildFolder: String?
  ) async throws(InstarError) -> (template: PluginTemplate, notes: [String]) {
    let what = "cannot make plugin '\(name)'"
    let read = try await versionedReports(of: paths, name: name, what)
    let reports = read.reports
    var notes = read.notes
    let sources = reports.map { report in
      VersionedSchemaSource(
        report.schema, name: VersionName.type(name, report.schema.version),
        comment: "The models of '\(URL(fileURLWithPath: report.store).lastPathComponent)', "
          + "from \(report.origin.words). Never change a version that was released.",
        notes: report.notes, comments: report.comments)
    }
    var versions = zip(reports, sources).map { report, source in
      Version(
        typeName: VersionName.type(name, report.schema.version), number: report.schema.version,
        source: source.text)
    }
    // Versions share most of their models, and then have the same notes.
    for note in sources.flatMap(\.notes) where !notes.contains(note) { notes.append(note) }
    var stages: [String] = []
    for (old, new) in zip(reports, reports.dropFirst()) {
      let (stage, own) = try stage(from: old.schema, to: new.schema, name: name, what)
      stages.append(stage)
      notes += own
    }
    let example = ExampleChange(of: reports[reports.count - 1].schema)
    let (old, new) = (
      versions[versions.count - 1].typeName, VersionName.type(name, example.schema.version)
    )
    versions.append(
      Version(
        typeName: new, number: example.schema.version,
        source: VersionedSchemaSource(
          example.schema, name: new,
          comment:
            "An example of a next version: \(example.entity) has a new property, \(example.property)."
        ).text))
    stages.append(".lightweight(fromVersion: \(old).self, toVersion: \(new).self)")
    let template = PluginTemplate(
      name: name, versions: versions, stages: stages, stageDeclarations: "",
      exampleTests: """
        @Test("rows keep their values, and \(example.property) is empty")
        func newProperty() throws {
          let store = try test.randomStore(at: \(old).self, seed: 1)
          try store.migrate()
          try store.expectNoChange(of: \(new).\(example.entity).self)
          let values = try store.read(\(new).self) { context in
            try context.fetch(FetchDescriptor<\(new).\(example.entity)>()).map(\\.\(example.property))
          }
          #expect(values.allSatisfy { $0 == nil })
        }
        """,
      exampleChange:
        "The last stage adds `\(example.entity).\(example.property)`, an optional text.",
      buildFolder: buildFolder)
    return (template, notes)
  }

  /// Returns the schemas of stores, ordered by their versions, and a note for each store that declares none.
  private static func versionedReports(
    of paths: [String], name: String, _ what: String
  ) async throws(InstarError) -> (reports: [SchemaReport], notes: [String]) {
    var reports: [SchemaReport] = []
    var notes: [String] = []
    for path in paths {
      var report = try await Supervisor().schema(of: FilePath.absolute(path))
      guard !report.schema.entities.isEmpty else {
        throw InstarError(
          .notAStore, what, store: report.store, cause: "the store '\(path)' has no tables",
          next: "name a store that the app has filled")
      }
      if report.version == nil {
        let last = reports.last.map { $0.schema.version.major + 1 } ?? 1
        report.schema.version = Schema.Version(last, 0, 0)
        let migration = CommandText.migrate(
          report.store, plugins: ["\(name).so"], adopting: "\(report.schema.version)")
        notes.append("'\(path)' declares no version; to migrate such a store, run: \(migration)")
      }
      guard report.schema.version.major < Int.max - paths.count else {
        throw InstarError(
          .invalidPlan, what, store: report.store,
          cause: "no version can follow version \(report.schema.version) of the store",
          next: "name a store of another version")
      }
      reports.append(report)
    }
    reports.sort { $0.schema.version < $1.schema.version }
    for (one, other) in zip(reports, reports.dropFirst())
    where one.schema.version == other.schema.version {
      throw InstarError(
        .invalidPlan, what,
        cause: "'\(one.store)' and '\(other.store)' are both at \(one.schema.version)",
        next: "name one store of each version")
    }
    return (reports, notes)
  }

  /// The stage between two imported versions. Placeholders for values that only the author knows become empty values.
  private static func stage(
    from old: Schema, to new: Schema, name: String, _ what: String
  ) throws(InstarError) -> (source: String, notes: [String]) {
    let comparison = SchemaComparison(
      from: .init(old, typeName: VersionName.type(name, old.version)),
      to: .init(new, typeName: VersionName.type(name, new.version))
    )
    let source = comparison.stageSource
    var text = source
    for match in source.matches(of: /<#(.*?)#>/).reversed() {
      guard let value = Self.emptyValue(of: String(match.1)) else {
        throw InstarError(
          .invalidPlan, what,
          cause:
            "the stage from \(old.version) to \(new.version) needs a value of type \(match.1) for existing rows",
          next: "name fewer stores, and write that stage yourself; 'instarctl schema diff' shows it"
        )
      }
      text.replaceSubrange(match.range, with: value)
    }
    let stage = "the stage from \(old.version) to \(new.version)"
    return (
      text,
      comparison.changes.compactMap(comparison.cureOfEmptyColumn).map {
        "\(stage) fails if there are rows: \($0)"
      }
        + (text == source
          ? [] : ["\(stage) writes empty values to rows that need one: replace them"])
    )
  }

  private static func emptyValue(of type: String) -> String? {
    switch type {
    case "String": "\"\""
    case "Bool": "false"
    case "Int", "Int16", "Int32", "Int64", "Double", "Float", "Decimal": "0"
    case "Date": "Date(timeIntervalSinceReferenceDate: 0)"
    case "Data": "Data()"
    case "UUID": "UUID()"
    case "URL": "URL(filePath: \"/\")"
    case _ where type.hasPrefix("["): "[]"
    default: nil
    }
  }
}

/// The next version of a schema: one entity has a new optional text.
private struct ExampleChange {
  var schema: Schema
  var entity: String
  var property: String

  /// - Parameter schema: Has at least one entity.
  init(of schema: Schema) {
    self.schema = schema
    self.schema.version = Schema.Version(schema.version.major + 1, 0, 0)
    let index = schema.entities.firstIndex { $0.superentityName == nil } ?? 0
    entity = schema.entities[index].name
    // A subclass must not have the property either.
    let taken = Set(
      schema.entities.flatMap { entity in
        entity.attributes.flatMap { [$0.name] + ($0.column?.names ?? []) }
          + entity.relationships.map(\.name)
      }.map { $0.lowercased() })
    property = SwiftName.free("remark", among: taken)
    self.schema.entities[index].attributes.append(
      Schema.Attribute(name: property, type: .string, isOptional: true))
  }
}
