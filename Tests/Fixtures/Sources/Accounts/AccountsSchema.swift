// swift-format-ignore-file
//
//  AccountsSchema.swift
//  Money, flags and codable values, and labels that become models of their own
//

import Foundation
import Instar

// MARK: Types

struct Money: Codable, Hashable, Sendable {
    var amount: Decimal
    var currency: Currency
    enum Currency: String, Codable, CaseIterable, Sendable { case eur = "EUR", usd = "USD", nok = "NOK" }
    static func + (lhs: Money, rhs: Money) -> Money { Money(amount: lhs.amount + rhs.amount, currency: lhs.currency) }
}

struct Recurrence: Codable, Equatable {
    enum Unit: String, Codable { case day, week, month, year }
    var unit: Unit
    var interval: Int
    var end: Date?
    private enum CodingKeys: String, CodingKey { case unit = "u", interval = "n", end }
}

struct Attachment: Codable, Identifiable, Hashable {
    var id = UUID()
    var name: String
    var bytes: Data?
    var mime: MIMEType
    struct MIMEType: RawRepresentable, Codable, Hashable { var rawValue: String }
}

enum AccountKind: String, Codable, CaseIterable, CustomStringConvertible {
    case checking, savings, credit
    var description: String { rawValue.uppercased() }
}

struct Flags: OptionSet, Codable, Hashable {
    let rawValue: Int
    static let cleared = Flags(rawValue: 1 << 0)
    static let flagged = Flags(rawValue: 1 << 1)
    static let all: Flags = [.cleared, .flagged]
}

enum Ledgers {
    enum V1: VersionedSchema {
        static var versionIdentifier: Schema.Version { .init(1, 0, 0) }
        static var models: [any PersistentModel.Type] {
            [Account.self, Category.self, Entry.self, Payee.self, Budget.self, Rule.self, Label.self, Snapshot.self]
        }

        @Model final class Account: CustomDebugStringConvertible {
            #Unique<Account>([\.name], [\.iban])
            #Index<Account>([\.name], [\.kind, \.sortOrder])
            private(set) var uid: UUID
            var name: String
            var iban: String?
            var kind: AccountKind
            var sortOrder: Int
            var opening: Money
            var colorHex: String = "#FF0000"
            var isClosed = false
            @Relationship(deleteRule: .cascade, inverse: \Entry.account) var entries: [Entry] = []
            @Relationship(deleteRule: .cascade) var snapshots: [Snapshot] = []
            @Transient var cachedBalance: Decimal? = nil
            @Transient private var observers: [(Account) -> Void] = []

            init(name: String, iban: String? = nil, kind: AccountKind = .checking, sortOrder: Int = 0, opening: Money) {
                self.uid = UUID()
                self.name = name
                self.iban = iban
                self.kind = kind
                self.sortOrder = sortOrder
                self.opening = opening
            }
            var balance: Decimal { entries.reduce(opening.amount) { $0 + $1.amount } }
            var debugDescription: String { "\(kind) \(name)" }
            func reset() { cachedBalance = nil; observers.removeAll() }
        }

        @Model final class Category {
            @Attribute(.unique) var path: String
            var title: String
            var parent: Category?
            @Relationship(deleteRule: .cascade, inverse: \Category.parent) var children: [Category]? = []
            @Relationship(deleteRule: .deny, inverse: \Entry.category) var entries: [Entry]? = []
            var budgets: [Budget]? = []
            init(path: String, title: String, parent: Category? = nil) {
                self.path = path
                self.title = title
                self.parent = parent
            }
            var depth: Int { sequence(first: self, next: \.parent).reduce(-1) { n, _ in n + 1 } }
        }

        @Model final class Entry {
            #Index<Entry>([\.date], [\.amount, \.date])
            var date: Date
            var amount: Decimal
            var memo: String?
            var flags: Flags = Flags.cleared
            var recurrence: Recurrence?
            var attachments: [Attachment] = []
            var account: Account?
            var category: Category?
            var payee: Payee?
            @Relationship(inverse: \Label.entries) var labels: [Label]
            init(date: Date, amount: Decimal, memo: String? = nil, account: Account? = nil, category: Category? = nil, payee: Payee? = nil, labels: [Label] = []) {
                self.date = date
                self.amount = amount
                self.memo = memo
                self.account = account
                self.category = category
                self.payee = payee
                self.labels = labels
            }
        }

        @Model final class Payee {
            var name: String
            var website: URL?
            @Relationship(inverse: \Entry.payee) var entries: [Entry] = []
            init(name: String, website: URL? = nil) { self.name = name; self.website = website }
        }

        @Model final class Budget {
            var month: Int
            var year: Int
            var limit: Double
            @Relationship(inverse: \Category.budgets) var categories: [Category]? = []
            init(month: Int, year: Int, limit: Double) { self.month = month; self.year = year; self.limit = limit }
        }

        @Model final class Rule {
            var pattern: String
            var isEnabled: Bool
            @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var actions: [String]
            var target: Category?
            init(pattern: String, isEnabled: Bool = true, actions: [String]) { self.pattern = pattern; self.isEnabled = isEnabled; self.actions = actions }
        }

        @Model final class Label {
            var text: String
            var entries: [Entry] = []
            init(text: String) { self.text = text }
        }

        @Model final class Snapshot {
            var day: Date
            var value: Decimal
            init(day: Date, value: Decimal) { self.day = day; self.value = value }
        }
    }
}

extension Ledgers {
    enum V2: VersionedSchema {
        static var versionIdentifier: Schema.Version { .init(1, 1, 0) }
        static var models: [any PersistentModel.Type] {
            [Account.self, Category.self, Entry.self, Payee.self, Budget.self, Rule.self, Label.self, Snapshot.self, EntryLabel.self]
        }

        @Model final class Account {
            #Unique<Account>([\.name], [\.iban])
            private(set) var uid: UUID
            var name: String
            var iban: String?
            var kind: AccountKind
            @Attribute(originalName: "sortOrder") var position: Int
            var opening: Money
            var colorHex: String = "#FF0000"
            @Attribute(originalName: "isClosed") var isArchived = false
            @Relationship(deleteRule: .cascade, inverse: \Entry.account) var entries: [Entry] = []
            @Relationship(deleteRule: .cascade, inverse: \Snapshot.account) var snapshots: [Snapshot] = []
            init(name: String, opening: Money) { uid = UUID(); self.name = name; kind = .checking; position = 0; self.opening = opening }
        }
        @Model final class Category {
            @Attribute(.unique) var path: String
            var title: String
            var parent: Category?
            @Relationship(deleteRule: .cascade, inverse: \Category.parent) var children: [Category]? = []
            @Relationship(deleteRule: .deny, inverse: \Entry.category) var entries: [Entry]? = []
            var budgets: [Budget]? = []
            init(path: String, title: String) { self.path = path; self.title = title }
        }
        @Model final class Entry {
            var date: Date
            var amount: Decimal
            var memo: String?
            var flags: Flags = Flags.cleared
            var recurrence: Recurrence?
            var attachments: [Attachment] = []
            var account: Account?
            var category: Category?
            var payee: Payee?
            @Relationship(inverse: \Label.entries) var labels: [Label]
            @Relationship(deleteRule: .cascade, inverse: \EntryLabel.entry) var labelLinks: [EntryLabel] = []
            init(date: Date, amount: Decimal) { self.date = date; self.amount = amount; labels = [] }
        }
        @Model final class Payee {
            @Attribute(.unique) var name: String
            var website: URL?
            @Relationship(inverse: \Entry.payee) var entries: [Entry] = []
            init(name: String, website: URL? = nil) { self.name = name; self.website = website }
        }
        @Model final class Budget {
            var month: Int
            var year: Int
            var limit: Double
            @Relationship(inverse: \Category.budgets) var categories: [Category]? = []
            init(month: Int, year: Int, limit: Double) { self.month = month; self.year = year; self.limit = limit }
        }
        @Model final class Rule {
            var pattern: String
            var isEnabled: Bool
            @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var actions: [String]
            var target: Category?
            init(pattern: String, isEnabled: Bool = true, actions: [String]) { self.pattern = pattern; self.isEnabled = isEnabled; self.actions = actions }
        }
        @Model final class Label {
            var text: String
            var entries: [Entry] = []
            @Relationship(deleteRule: .cascade, inverse: \EntryLabel.label) var links: [EntryLabel] = []
            init(text: String) { self.text = text }
        }
        @Model final class EntryLabel {
            var addedAt: Date
            var entry: Entry?
            var label: Label?
            init(entry: Entry, label: Label, addedAt: Date) { self.entry = entry; self.label = label; self.addedAt = addedAt }
        }
        @Model final class Snapshot {
            var day: Date
            var value: Decimal
            var account: Account?
            init(day: Date, value: Decimal) { self.day = day; self.value = value }
        }
    }

    enum V3: VersionedSchema {
        static var versionIdentifier: Schema.Version { .init(2, 0, 0) }
        static var models: [any PersistentModel.Type] {
            [Account.self, Category.self, Entry.self, Payee.self, Budget.self, Rule.self, Label.self, Snapshot.self, EntryLabel.self]
        }
        @Model final class Account {
            #Unique<Account>([\.name], [\.iban])
            private(set) var uid: UUID
            var name: String
            var iban: String?
            var kind: AccountKind
            var position: Int
            var opening: Money
            var colorHex: String = "#FF0000"
            var isArchived = false
            var balance: Decimal = 0
            @Relationship(deleteRule: .cascade, inverse: \Entry.account) var entries: [Entry] = []
            @Relationship(deleteRule: .cascade, inverse: \Snapshot.account) var snapshots: [Snapshot] = []
            init(name: String, opening: Money) { uid = UUID(); self.name = name; kind = .checking; position = 0; self.opening = opening }
        }
        @Model final class Category {
            @Attribute(.unique) var path: String
            var title: String
            var depth: Int?
            var parent: Category?
            @Relationship(deleteRule: .cascade, inverse: \Category.parent) var children: [Category]? = []
            @Relationship(deleteRule: .deny, inverse: \Entry.category) var entries: [Entry]? = []
            var budgets: [Budget]? = []
            init(path: String, title: String) { self.path = path; self.title = title }
        }
        @Model final class Entry {
            var date: Date
            @Attribute(originalName: "amount") var value: Decimal
            var memo: String = ""
            var flags: Flags = Flags.cleared
            var recurrence: Recurrence?
            var attachments: [Attachment] = []
            var account: Account?
            var category: Category?
            var payee: Payee?
            @Relationship(deleteRule: .cascade, inverse: \EntryLabel.entry) var labelLinks: [EntryLabel] = []
            init(date: Date, value: Decimal) { self.date = date; self.value = value }
            var labels: [Label] { labelLinks.sorted(using: KeyPathComparator(\.addedAt)).compactMap(\.label) }
        }
        @Model final class Payee {
            @Attribute(.unique) var name: String
            var website: URL?
            var lastUsed: Date?
            @Relationship(inverse: \Entry.payee) var entries: [Entry] = []
            init(name: String, website: URL? = nil) { self.name = name; self.website = website }
        }
        @Model final class Budget {
            @Attribute(.unique) var month: String = ""
            var limit: Money = Money(amount: 0, currency: .eur)
            @Relationship(inverse: \Category.budgets) var categories: [Category]? = []
            init(month: String, limit: Money) { self.month = month; self.limit = limit }
        }
        @Model final class Rule {
            var pattern: String
            var isEnabled: Bool
            @Attribute(.transformable(by: "NSSecureUnarchiveFromData")) var actions: [String]
            @Attribute(.codable) var limits: Measurement<UnitMass>?
            var target: Category?
            init(pattern: String, isEnabled: Bool = true, actions: [String]) { self.pattern = pattern; self.isEnabled = isEnabled; self.actions = actions }
        }
        @Model final class Label {
            var text: String
            @Relationship(deleteRule: .cascade, inverse: \EntryLabel.label) var links: [EntryLabel] = []
            init(text: String) { self.text = text }
        }
        @Model final class EntryLabel {
            var addedAt: Date
            var entry: Entry?
            var label: Label?
            init(entry: Entry, label: Label, addedAt: Date) { self.entry = entry; self.label = label; self.addedAt = addedAt }
        }
        @Model final class Snapshot {
            var day: Date
            var value: Decimal
            var account: Account?
            init(day: Date, value: Decimal) { self.day = day; self.value = value }
        }
    }
}
