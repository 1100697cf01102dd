import Testing

@Suite("@Model expands")
struct ModelExpansionTests {
  @Test(
    "@Model expands a model to its storage, its description and one slot per persisted property")
  func everything() {
    expectExpansion(
      #"""
      @Model public final class Note {
        @Attribute(.unique) public var uid: String
        var title: String = "untitled"
        @Relationship(deleteRule: .nullify, inverse: \Tag.note?) var tags: [Tag] = []
        var folder: Folder?
        @Transient var isOpen = false
        var shout: String { title.uppercased() }
        init(uid: String) { self.uid = uid }
      }
      """#,
      #"""
      public final class Note {
        @InstarModel._PersistedProperty(0) public var uid: String
        @InstarModel._PersistedProperty(1)
        var title: String = "untitled"
        @InstarModel._PersistedProperty(2) var tags: [Tag] = []
        @InstarModel._PersistedProperty(3)
        var folder: Folder?
        var isOpen = false
        var shout: String { title.uppercased() }
        init(uid: String) { self.uid = uid }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        public var _modelStorage: InstarModel.ModelStorage { _$storage }

        public static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

        public init(_modelStorage storage: InstarModel.ModelStorage) {
          _uid = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) public static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("uid", \Note.uid, InstarModel.AttributeMetadata(.unique)),
            InstarSchema.Schema.PropertyMetadata("title", \Note.title, constant: "untitled"),
            InstarSchema.Schema.PropertyMetadata("tags", \Note.tags, InstarModel.RelationshipMetadata(deleteRule: .nullify, inverse: \Tag.note), constant: []),
            InstarSchema.Schema.PropertyMetadata("folder", \Note.folder),
          ]
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model expands a package model to package members")
  func access() {
    expectExpansion(
      """
      @Model package final class Note {
        var title: String
        init(title: String) { self.title = title }
      }
      """,
      #"""
      package final class Note {
        @InstarModel._PersistedProperty(0)
        var title: String
        init(title: String) { self.title = title }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        package var _modelStorage: InstarModel.ModelStorage { _$storage }

        package static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

        package init(_modelStorage storage: InstarModel.ModelStorage) {
          _title = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) package static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("title", \Note.title),
          ]
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model expands a model with an operator == of its own to a member that stands for it")
  func ownEquality() {
    expectExpansion(
      """
      @Model final class Note {
        var title: String
        static func == (left: Note, right: Note) -> Bool { left.title == right.title }
        init(title: String) { self.title = title }
      }
      """,
      #"""
      final class Note {
        @InstarModel._PersistedProperty(0)
        var title: String
        static func == (left: Note, right: Note) -> Bool { left.title == right.title }
        init(title: String) { self.title = title }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

        init(_modelStorage storage: InstarModel.ModelStorage) {
          _title = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("title", \Note.title),
          ]
        }

        @_implements(Swift.Equatable, ==(_:_:))
        static func _$isEqual(_ left: Note, _ right: Note) -> Bool {
          left == right
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model expands a model nested in an extension, as visible as the extension says")
  func nested() {
    expectExpansion(
      """
      public extension NotesSchemaV1 {
        @Model final class Note {
          var title: String
          init(title: String) { self.title = title }
        }
      }
      """,
      #"""
      public extension NotesSchemaV1 {
        final class Note {
          @InstarModel._PersistedProperty(0)
          var title: String
          init(title: String) { self.title = title }

          private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

          public var _modelStorage: InstarModel.ModelStorage { _$storage }

          public static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

          public init(_modelStorage storage: InstarModel.ModelStorage) {
            _title = InstarModel.PersistedProperty()
            self._$storage = storage
          }

          @_optimize(none) public static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
            [
              InstarSchema.Schema.PropertyMetadata("title", \Note.title),
            ]
          }
        }
      }

      nonisolated extension NotesSchemaV1.Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model expands a class that is not final to one that other models can inherit from")
  func notFinal() {
    expectExpansion(
      """
      @Model open class Region {
        var name: String
        init(name: String) { self.name = name }
      }
      """,
      #"""
      open class Region {
        @InstarModel._PersistedProperty(0, of: "Region")
        var name: String
        init(name: String) { self.name = name }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Region._modelDescriptor)

        open var _modelStorage: InstarModel.ModelStorage { _$storage }

        open class var _modelDescriptor: InstarModel.ModelDescriptor { _$descriptor }

        private static let _$descriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Region.self, name: "Region")

        required public init(_modelStorage storage: InstarModel.ModelStorage) {
          _name = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        open class var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          _$properties(Region.self, of: Region.self)
        }

        @_optimize(none) public static func _$properties<_$Model: Region>(
          _: Region.Type, of type: _$Model.Type
        ) -> [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("name", \_$Model.name),
          ]
        }

        private static var _$firstSlot: Int { 0 }
      }

      nonisolated extension Region: InstarModel.PersistentModel {}
      """#)
  }

  @Test(
    "@Model expands a model that inherits from another one to slots that follow the inherited ones")
  func subclass() {
    expectExpansion(
      """
      @Model final class Country: SchemaV1.Region, Comparable {
        var capital: String?
        init() { super.init(name: "") }
      }
      """,
      #"""
      final class Country: SchemaV1.Region, Comparable {
        @InstarModel._PersistedProperty(0, of: "Country")
        var capital: String?
        init() { super.init(name: "") }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Country._modelDescriptor)

        override var _modelStorage: InstarModel.ModelStorage {
          _$storage.joined(with: super._modelStorage)
        }

        override class var _modelDescriptor: InstarModel.ModelDescriptor { _$descriptor }

        private static let _$descriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Country.self, name: "Country", superclass: SchemaV1.Region.self)

        required init(_modelStorage storage: InstarModel.ModelStorage) {
          self._$storage = storage
          super.init(_modelStorage: storage)
        }

        override class var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          _$properties(Country.self, of: Country.self)
        }

        @_optimize(none) static func _$properties<_$Model: Country>(
          _: Country.Type, of type: _$Model.Type
        ) -> [InstarSchema.Schema.PropertyMetadata] {
          SchemaV1.Region._$properties(SchemaV1.Region.self, of: type) + [
            InstarSchema.Schema.PropertyMetadata("capital", \_$Model.capital),
          ]
        }

        private static let _$firstSlot: Int = InstarModel.ModelDescriptor.slotCount(of: SchemaV1.Region.self)
      }
      """#, isSubclass: true)
  }

  @Test("@Model expands a class with protocols only to one that inherits from no model")
  func protocols() {
    expectExpansion(
      """
      @Model final class Tag: CustomStringConvertible {
        var name: String
        init(name: String) { self.name = name }
        var description: String { name }
      }
      """,
      #"""
      final class Tag: CustomStringConvertible {
        @InstarModel._PersistedProperty(0, of: "Tag")
        var name: String
        init(name: String) { self.name = name }
        var description: String { name }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Tag._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Tag.self, name: "Tag")

        init(_modelStorage storage: InstarModel.ModelStorage) {
          _name = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("name", \Tag.name),
          ]
        }

        private static var _$firstSlot: Int { 0 }
      }

      nonisolated extension Tag: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model expands properties with inferred types, backticks and restricted setters")
  func unusualProperties() {
    expectExpansion(
      """
      @Model final class Note {
        var count = 0
        var `default`: Date = .now
        private(set) var secret: Int = 1
        init() {}
      }
      """,
      #"""
      final class Note {
        @InstarModel._PersistedProperty(0)
        var count = 0
        @InstarModel._PersistedProperty(1)
        var `default`: Date = .now
        @InstarModel._PersistedProperty(2)
        private(set) var secret: Int = 1
        init() {}

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

        init(_modelStorage storage: InstarModel.ModelStorage) {
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("count", \Note.count, constant: 0),
            InstarSchema.Schema.PropertyMetadata("default", \Note.`default`, defaultValue: {
        let _$value: Date = .now
        return _$value
        }),
            InstarSchema.Schema.PropertyMetadata("secret", \Note.secret, constant: 1),
          ]
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """#)
  }

  @Test("@Model makes no slot for what is not persisted")
  func notPersisted() {
    expectExpansion(
      """
      @Model final class Note {
        @Transient var cache: [String: Int]?
        @Transient var observed: Int = 1 { didSet { print(observed) } }
        static var shared: Note?
        class var kind: String { "note" }
        lazy var upper: String = "x"
        var computed: Int { get { 1 } set {} }
        func rename() {}
        init() {}
      }
      """,
      """
      final class Note {
        var cache: [String: Int]?
        var observed: Int = 1 { didSet { print(observed) } }
        static var shared: Note?
        class var kind: String { "note" }
        lazy var upper: String = "x"
        var computed: Int { get { 1 } set {} }
        func rename() {}
        init() {}

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Note._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Note.self, name: "Note")

        init(_modelStorage storage: InstarModel.ModelStorage) {
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
          ]
        }
      }

      nonisolated extension Note: InstarModel.PersistentModel {}
      """)
  }

  @Test(
    "@Model expands a persisted property to accessors of its slot and a witness of its initialization"
  )
  func persistedProperty() {
    expectExpansion(
      """
      final class Note {
        @_PersistedProperty(1) var title: String = "untitled"
        @_PersistedProperty(2) public var `default`: Int
      }
      """,
      """
      final class Note {
        var title: String {
        @storageRestrictions(accesses: _$storage, initializes: _title) init(initialValue) { _$storage.initialize(slot: 1, to: initialValue); _title = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 1) }
        @inline(never) set { _$storage.setValue(newValue, at: 1, of: self) }
        }

        private var _title: InstarModel.PersistedProperty
        public var `default`: Int {
        @storageRestrictions(accesses: _$storage, initializes: _default) init(initialValue) { _$storage.initialize(slot: 2, to: initialValue); _default = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 2) }
        @inline(never) set { _$storage.setValue(newValue, at: 2, of: self) }
        }

        private var _default: InstarModel.PersistedProperty
      }
      """)
  }

  @Test("@Model expands a property whose type may not be storable to a check that names it")
  func typeCheck() {
    expectExpansion(
      """
      final class Device {
        @_PersistedProperty(0) var connection: Net.Socket!
        @_PersistedProperty(1) var names: [String?]?
        @_PersistedProperty(2) var port = Port(80)
        @_PersistedProperty(3) var count = 0
      }
      """,
      """
      final class Device {
        var connection: Net.Socket! {
        @storageRestrictions(accesses: _$storage, initializes: _connection) init(initialValue) { _$storage.initialize(slot: 0, to: initialValue); _connection = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 0) }
        @inline(never) set { _$storage.setValue(newValue, at: 0, of: self) }
        }

        private var _connection: InstarModel.PersistedProperty

        private enum _$type_connection: InstarModel._StorableProperty {
          @available(*, unavailable, message: "'connection' cannot be stored: its type must be a model, an array of models, or Codable; or mark the property '@Transient'")
          @_disfavoredOverload
          static func type<Value>(_: Value.Type) {}
          static func check() { type((Net.Socket?).self) }
        }
        var names: [String?]? {
        @storageRestrictions(accesses: _$storage, initializes: _names) init(initialValue) { _$storage.initialize(slot: 1, to: initialValue); _names = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 1) }
        @inline(never) set { _$storage.setValue(newValue, at: 1, of: self) }
        }

        private var _names: InstarModel.PersistedProperty
        var port {
        @storageRestrictions(accesses: _$storage, initializes: _port) init(initialValue) { _$storage.initialize(slot: 2, to: initialValue); _port = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 2) }
        @inline(never) set { _$storage.setValue(newValue, at: 2, of: self) }
        }

        private var _port: InstarModel.PersistedProperty

        private enum _$type_port: InstarModel._StorableProperty {
          @available(*, unavailable, message: "'port' cannot be stored: its type must be a model, an array of models, or Codable; or mark the property '@Transient'")
          @_disfavoredOverload
          static func type<Value>(_: Value.Type) {}
          static func check() { type(Swift.type(of: Port(80))) }
        }
        var count {
        @storageRestrictions(accesses: _$storage, initializes: _count) init(initialValue) { _$storage.initialize(slot: 3, to: initialValue); _count = InstarModel.PersistedProperty() }
        @inline(never) get { _$storage.value(at: 3) }
        @inline(never) set { _$storage.setValue(newValue, at: 3, of: self) }
        }

        private var _count: InstarModel.PersistedProperty
      }
      """)
  }

  @Test(
    "@Model expands a property of a class in a tree of models to accessors of the object's own storage"
  )
  func inheritableProperty() {
    expectExpansion(
      """
      class Region {
        @_PersistedProperty(1, of: "Region") var name: String
      }
      """,
      """
      class Region {
        var name: String {
        @storageRestrictions(accesses: _$storage, initializes: _name) init(initialValue) { _$storage.initialize(slot: Region._$firstSlot + 1, to: initialValue); _name = InstarModel.PersistedProperty() }
        @inline(never) get { _modelStorage.value(at: Region._$firstSlot + 1) }
        @inline(never) set { _modelStorage.setValue(newValue, at: Region._$firstSlot + 1, of: self) }
        }

        private var _name: InstarModel.PersistedProperty
      }
      """)
  }

  @Test("indexes with names of their own are handed on as they are written")
  func namedIndexes() {
    expectExpansion(
      #"""
      @Model final class Car {
        #Index<Car>(.binary([\.maker]), .binary([\.year]), .rtree([\.year]), .named("byYear", [.descending(\.year)], where: "ZYEAR > 0"))
        var year: Int
        init(year: Int) { self.year = year }
      }
      """#,
      #"""
      final class Car {
        @InstarModel._PersistedProperty(0)
        var year: Int
        init(year: Int) { self.year = year }

        private var _$storage: InstarModel.ModelStorage = InstarModel.ModelStorage(Car._modelDescriptor)

        var _modelStorage: InstarModel.ModelStorage { _$storage }

        static let _modelDescriptor: InstarModel.ModelDescriptor = InstarModel.ModelDescriptor(Car.self, name: "Car", indices: [[\.maker], [\.year]], namedIndices: [.named("byYear", [.descending(\.year)], where: "ZYEAR > 0")])

        init(_modelStorage storage: InstarModel.ModelStorage) {
          _year = InstarModel.PersistedProperty()
          self._$storage = storage
        }

        @_optimize(none) static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
            InstarSchema.Schema.PropertyMetadata("year", \Car.year),
          ]
        }
      }

      nonisolated extension Car: InstarModel.PersistentModel {}
      """#)
  }
}
