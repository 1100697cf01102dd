import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("@Table and @Column")
struct TableMacroTests {
  @Test("tables and columns are described with the model")
  func expansion() {
    expectExpansion(
      """
      @Table("note", .strict)
      @Model final class Note {
        @Column(.primaryKey) var uid: String
        @Column("folder") var folder: Folder?
        init(uid: String) { self.uid = uid }
      }
      """,
      #"""

      final class Note {
        @InstarModel._PersistedProperty(0) var uid: String
        @InstarModel._PersistedProperty(1) var folder: Folder?
        init(uid: String) { self.uid = uid }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note", table: InstarSchema.Schema.Table("note", .strict))

        init(_modelStorage storage: InstarModel.ModelStorage) {
          _uid = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("uid", \Note.uid).column(InstarSchema.Schema.Column(.primaryKey)),
            InstarSchema.Schema.PropertyMetadata("folder", \Note.folder).column(InstarSchema.Schema.Column("folder")),
          ]
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Table and @Column have no effect outside of a model, and say so")
  func outside() {
    expectDiagnostics(
      """
      @Table("note") final class Note {
        @Column("uid") var uid: String
      }
      """,
      [
        DiagnosticSpec(
          message:
            "'@Column' has an effect only in a class marked '@Model'; mark the class, or remove '@Column'.",
          line: 2, column: 3, fixIts: [FixItSpec(message: "remove '@Column'")]),
        DiagnosticSpec(
          message:
            "'@Table' has an effect only on a class marked '@Model'; mark the class, or remove '@Table'.",
          line: 1, column: 1),
      ],
      fixed: """
        @Table("note") final class Note {
          var uid: String
        }
        """)
  }

  @Test("a transient property has no column")
  func transient() {
    expectDiagnostics(
      """
      @Table @Model final class Note {
        @Transient @Column("open") var isOpen = false
        var title: String
        init(title: String) { self.title = title }
      }
      """,
      [
        DiagnosticSpec(
          message:
            "'@Column' has no effect on a '@Transient' property, because it is not stored; remove one of the two.",
          line: 2, column: 14, fixIts: [FixItSpec(message: "remove '@Column'")])
      ],
      fixed: """
        @Table @Model final class Note {
          @Transient var isOpen = false
          var title: String
          init(title: String) { self.title = title }
        }
        """)
  }
}
