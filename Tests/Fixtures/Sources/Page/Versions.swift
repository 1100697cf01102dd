// swift-format-ignore-file
import Instar

public typealias CurrentVersion = PageSchemaV3
public typealias Note = CurrentVersion.Note
public typealias Folder = CurrentVersion.Folder
public typealias Tag = CurrentVersion.Tag
public typealias Everything = CurrentVersion.Everything

// MARK: 1.0.0: models in the body of an enum

public enum PageSchemaV1: VersionedSchema {
    public static let versionIdentifier = Schema.Version(1, 0, 0)

    public static var models: [any PersistentModel.Type] {
        [Note.self, Folder.self]
    }

    @Model
    public final class Note {
        public var name: String
        public var content: String
        public var subtitle: String?
        public var folder: Folder?

        public init(name: String, content: String) {
            self.name = name
            self.content = content
        }
    }

    @Model
    public final class Folder {
        public var name: String
        @Relationship(deleteRule: .cascade, inverse: \Note.folder) public var notes: [Note] = []

        public init(name: String) { self.name = name }
    }
}

// MARK: 2.0.0: a struct, models in an extension

public struct PageSchemaV2: VersionedSchema {
    public static let versionIdentifier: Schema.Version = Schema.Version(2, 0, 0)
    public static let models: [any PersistentModel.Type] = [Note.self, Folder.self]
}

extension PageSchemaV2 {
    @Model
    public final class Note {
        @Attribute(originalName: "name") public var title: String
        @Attribute(originalName: "content") public var contentOld: String
        public var contentNew: Data?
        public var priority: Priority = Priority.normal
        public var folder: Folder?

        public init(title: String, contentOld: String) {
            self.title = title
            self.contentOld = contentOld
        }
    }

    @Model
    public final class Folder {
        public var name: String
        @Relationship(deleteRule: .cascade, inverse: \Note.folder) public var notes: [Note] = []

        public init(name: String) { self.name = name }
    }
}

// MARK: 3.0.0: the current one

public enum PageSchemaV3 {}

extension PageSchemaV3: VersionedSchema {
    public static var versionIdentifier: Schema.Version { Schema.Version(3, 0, 0) }
    public static var models: [any PersistentModel.Type] {
        [Note.self, Folder.self, Tag.self, Everything.self, Person.self, Ticket.self]
    }
}

public extension PageSchemaV3 {
    @Model
    final class Note {
        #Unique<Note>([\.uid], [\.title, \.createdAt])
        #Index<Note>([\.title], [\.priority, \.title])

        @Attribute(.unique) public var uid: UUID = UUID()
        public var title: String
        @Attribute(originalName: "contentNew") public var content: Data?
        public var priority: Priority = Priority.normal
        public var createdAt: Date = Date.now
        public var views: Int = 0
        public var rating: Double?
        public var keywords: [String] = []
        public var address: Address?
        public var status: Status = Status.open
        @Transient public var isOpen: Bool = false
        @Transient public var lastError: String?

        public var folder: Folder?
        @Relationship(inverse: \Tag.notes) public var tags: [Tag] = []
        @Relationship(originalName: "links") public var related: [Note] = []

        public init(title: String, priority: Priority = .normal) {
            self.title = title
            self.priority = priority
        }

        public convenience init(_ title: String, in folder: Folder?) {
            self.init(title: title)
            self.folder = folder
        }

        public var text: String { content.map { String(decoding: $0, as: UTF8.self) } ?? "" }
        public var headline: String {
            get { title.uppercased() }
            set { title = newValue.lowercased() }
        }

        public func raise() { priority = .high }
    }

    @Model
    final class Folder: CustomStringConvertible {
        public var name: String
        @Relationship(deleteRule: .cascade, minimumModelCount: 0, maximumModelCount: 0, inverse: \Note.folder)
        public var notes: [Note]? = []
        @Relationship(deleteRule: .deny) public var parent: Folder?
        @Relationship(inverse: \Folder.parent) public var children: [Folder] = []

        public init(name: String, parent: Folder? = nil) {
            self.name = name
            self.parent = parent
        }

        public var description: String { "Folder \(name)" }
    }

    @Model
    final class Tag: Identifiable, Hashable {
        #Index<Tag>(.binary([\.name]), .rtree([\.x, \.y]))
        @Attribute(.unique, .spotlight) public var name: String
        public var x: Double = 0
        public var y: Double = 0
        public var notes: [Note] = []

        public init(_ name: String) { self.name = name }

        public static func == (lhs: Tag, rhs: Tag) -> Bool { lhs.name == rhs.name }
        public func hash(into hasher: inout Hasher) { hasher.combine(name) }
    }

    @Model
    final class Person {
        public var id: String
        @Attribute(.preserveValueOnDeletion, hashModifier: "2") public var givenName: String
        @Attribute(.allowsCloudEncryption) public var secret: String?
        @Relationship(.unique, deleteRule: .nullify, minimumModelCount: 0, maximumModelCount: 1, originalName: "pass", hashModifier: "1")
        public var ticket: Ticket?
        @Relationship(deleteRule: .noAction) public var friends: [Person] = []

        public init(id: String, givenName: String) {
            self.id = id
            self.givenName = givenName
        }
    }

    @Model
    final class Ticket {
        public var number: Int
        public init(number: Int) { self.number = number }
    }

    @Model
    final class Everything {
        public var string: String = "a" + "b"
        public var stringOrNil: String?
        public var bool: Bool = true
        public var int: Int = -1
        public var int8: Int8 = 1
        public var int16: Int16 = 1
        public var int32: Int32 = 1
        public var int64: Int64 = 1
        public var uint: UInt = 1
        public var uint8: UInt8 = 1
        public var uint16: UInt16 = 1
        public var uint32: UInt32 = 1
        public var uint64: UInt64 = UInt64.max
        public var double: Double = 1.5
        public var float: Float = 1.5
        public var decimal: Decimal = Decimal(1)
        public var decimalOrNil: Decimal?
        public var date: Date = Date(timeIntervalSinceReferenceDate: 0)
        public var dateOrNil: Date?
        public var uuid: UUID = UUID()
        public var url: URL = URL(string: "https://example.com")!
        public var urlOrNil: URL?
        public var data: Data = Data([1, 2])
        @Attribute(.externalStorage) public var large: Data?
        public var priority: Priority = Priority.low
        public var priorityOrNil: Priority?
        public var status: Status = Status.open
        public var shape: Shape = Shape.round
        public var reminder: Reminder = Reminder.never
        public var reminderOrNil: Reminder?
        public var address: Address = Address(street: "s", city: "c")
        public var addressOrNil: Address?
        public var addresses: [Address] = []
        public var strings: [String] = ["x"]
        public var numbers: [Int]?
        public var priorities: [Priority] = []
        public var dates: [Date] = []
        public var text: AttributedString = AttributedString("plain")
        public var textOrNil: AttributedString?
        @Attribute(.ephemeral) public var progress: Double = 0
        @Attribute(.codable) public var color: Color = Color()
        @Attribute(.transformable(by: DrawingTransformer.self)) public var drawing: Drawing?
        @Attribute(.transformable(by: "DrawingTransformer")) public var sketch: Drawing?

        public init() {}
    }
}

// MARK: The plan, a class

public final class PagePlan: SchemaMigrationPlan {
    public static var schemas: [any VersionedSchema.Type] {
        [PageSchemaV1.self, PageSchemaV2.self, PageSchemaV3.self]
    }

    public static var stages: [MigrationStage] { [fillContent, addPriority] }

    static let addPriority = MigrationStage.lightweight(fromVersion: PageSchemaV1.self, toVersion: PageSchemaV2.self)

    static let fillContent = MigrationStage.custom(fromVersion: PageSchemaV2.self, toVersion: PageSchemaV3.self) { context in
        let notes = try context.fetch(FetchDescriptor<PageSchemaV2.Note>())
        for note in notes {
            note.contentNew = Data(note.contentOld.utf8)
        }
        try context.save()
    } didMigrate: { context in
        let tag = Tag("migrated")
        context.insert(tag)
        for note in try context.fetch(FetchDescriptor<Note>()) {
            note.uid = UUID()
            note.tags.append(tag)
        }
    }
}

/// A version that leaves out the models that its notes belong to.
enum PageSchemaIncomplete: VersionedSchema {
    static let versionIdentifier = Schema.Version(9, 0, 0)
    static let models: [any PersistentModel.Type] = [PageSchemaV3.Note.self]
}
