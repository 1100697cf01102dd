// swift-format-ignore-file
import Instar

// A package that other modules import: everything is public.

public struct NotebookSchemaV1: VersionedSchema {
  public static let versionIdentifier: Schema.Version = Schema.Version(1, 0, 0)
  public static let models: [any PersistentModel.Type] = [Page.self, Notebook.self]
}

public struct NotebookSchemaV2: VersionedSchema {
  public static let versionIdentifier: Schema.Version = .init(2, 0, 0)
  public static let models: [any PersistentModel.Type] = [Page.self, Notebook.self]
}

extension NotebookSchemaV1 {
  @Model
  public final class Notebook {
    public var title: String
    @Relationship(deleteRule: .cascade, inverse: \Page.notebook)
    public var pages: [Page]

    public init(title: String, pages: [Page] = []) {
      self.title = title
      self.pages = pages
    }
  }

  @Model
  public final class Page {
    public var number: Int
    public var text: String
    public var notebook: Notebook?

    public init(number: Int, text: String, notebook: Notebook? = nil) {
      self.number = number
      self.text = text
      self.notebook = notebook
    }
  }
}

public extension NotebookSchemaV2 {
  @Model
  final class Notebook {
    var title: String
    @Relationship(deleteRule: .cascade, inverse: \Page.notebook)
    var pages: [Page]
    public private(set) var createdAt: Date = Date.distantPast

    init(title: String, pages: [Page] = []) {
      self.title = title
      self.pages = pages
    }
  }

  @Model
  final class Page {
    var number: Int
    @Attribute(originalName: "text") var body: String
    var notebook: Notebook?

    init(number: Int, body: String, notebook: Notebook? = nil) {
      self.number = number
      self.body = body
      self.notebook = notebook
    }
  }
}

public final class NotebookMigrationPlan: SchemaMigrationPlan {
  public static let schemas: [any VersionedSchema.Type] = [
    NotebookSchemaV1.self, NotebookSchemaV2.self,
  ]
  public static let stages: [MigrationStage] = [
    MigrationStage.lightweight(
      fromVersion: NotebookSchemaV1.self, toVersion: NotebookSchemaV2.self)
  ]
}

public typealias CurrentNotebookSchema = NotebookSchemaV2
public typealias Notebook = CurrentNotebookSchema.Notebook
public typealias Page = CurrentNotebookSchema.Page
