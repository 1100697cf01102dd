// swift-format-ignore-file
import Foundation
import Instar

@Model public final class Account {
    public var name: String
    public var balance: Decimal = Decimal(0)
    public var opened: Optional<Date> = nil
    public var entries: Array<Entry> = Array<Entry>()
    public var limits: Optional<Array<Double>> = nil
    public init(name: String) { self.name = name }
}

@Model public final class Entry {
    public var amount: Decimal
    public var memo: Swift.String = ""
    public var when: Foundation.Date
    // Set right after `init`; never nil in practice.
    public var account: Account!
    public var category: Optional<Category>
    public var flags: UInt8 = 0
    public var sequence: Int32
        = 7

    public init(amount: Decimal, account: Account, category: Category? = nil) {
        self.amount = amount
        self.when = Date(timeIntervalSinceReferenceDate: 0)
        self.category = category
        self.account = account
    }
}

@Model public final class Category {
    @Attribute(.unique, originalName: "title")
    public var name: String
    public var parent: Category?
    @Relationship(deleteRule: .nullify, inverse: \Category.parent)
    public var children: [Category] = []
    public init(name: String, parent: Category? = nil) {
        self.name = name
        self.parent = parent
    }
}

public enum LedgerSchema: VersionedSchema {
    public static let versionIdentifier = Schema.Version(1, 4, 2)
    public static let models: [any PersistentModel.Type] = [Account.self, Entry.self, Category.self]
}

public enum LedgerPlan: SchemaMigrationPlan {
    public static let schemas: [any VersionedSchema.Type] = [LedgerSchema.self]
    public static let stages: [MigrationStage] = []
}
