// swift-format-ignore-file
//
//  AccountsPlan.swift
//  Helpers for any model, values handed over by two stages
//

import Foundation
import Instar

private final class Holder<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var stored: Value
    init(_ value: Value) { stored = value }
    var value: Value { lock.withLock { stored } }
    func update(_ body: (inout Value) -> Void) { lock.withLock { body(&stored) } }
}

extension ModelContext {
    func all<T: PersistentModel>(_ type: T.Type = T.self, where predicate: Predicate<T>? = nil, sort: [SortDescriptor<T>] = []) throws -> [T] {
        try fetch(FetchDescriptor<T>(predicate: predicate, sortBy: sort))
    }
    func existing<T>(_ type: T.Type, matching predicate: Predicate<T>) throws -> T? where T: PersistentModel {
        var descriptor = FetchDescriptor<T>(predicate: predicate)
        descriptor.fetchLimit = 1
        return try fetch(descriptor).first
    }
    func removeDuplicates<T: PersistentModel, Key: Hashable>(of type: T.Type, by key: KeyPath<T, Key>, merge: (T, T) -> Void) throws -> Int {
        let groups = Dictionary(grouping: try all(type), by: { $0[keyPath: key] })
        var removed = 0
        for (_, models) in groups where models.count > 1 {
            let sorted = models.sorted { $0.persistentModelID < $1.persistentModelID }
            for other in sorted.dropFirst() {
                merge(sorted[0], other)
                delete(other)
                removed += 1
            }
        }
        return removed
    }
}

enum LedgerPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [Ledgers.V1.self, Ledgers.V2.self, Ledgers.V3.self] }
    static var stages: [MigrationStage] { [v1ToV2, v2ToV3] }

    private static let budgets = Holder<[PersistentIdentifier: (month: Int, year: Int, limit: Double)]>([:])

    static let v1ToV2 = MigrationStage.custom(fromVersion: Ledgers.V1.self, toVersion: Ledgers.V2.self) { context in
        let removed = try context.removeDuplicates(of: Ledgers.V1.Payee.self, by: \.name) { kept, other in
            kept.entries.append(contentsOf: other.entries)
            kept.website = kept.website ?? other.website
        }
        print("merged \(removed) payees")
        try context.save()
    } didMigrate: { context in
        try context.transaction {
            let labeled = #Predicate<Ledgers.V2.Entry> { !$0.labels.isEmpty }
            for entry in try context.all(where: labeled) {
                for label in entry.labels {
                    context.insert(Ledgers.V2.EntryLabel(entry: entry, label: label, addedAt: entry.date))
                }
                entry.labels.removeAll()
            }
        }
    }

    static let v2ToV3: MigrationStage = .custom(
        fromVersion: Ledgers.V2.self,
        toVersion: Ledgers.V3.self,
        willMigrate: saveBudgets,
        didMigrate: { context in
            try restoreBudgets(context)
            try computeBalances(context)
            try context.save()
        })

    @Sendable private static func saveBudgets(_ context: ModelContext) throws {
        typealias Old = Ledgers.V2
        for budget in try context.all(Old.Budget.self) {
            budgets.update { $0[budget.persistentModelID] = (budget.month, budget.year, budget.limit) }
        }
        let noMemo = #Predicate<Old.Entry> { $0.memo == nil || $0.memo == "" }
        for entry in try context.all(where: noMemo) { entry.memo = entry.payee?.name ?? "—" }
        let zero: Decimal = 0
        let old = Calendar(identifier: .gregorian).date(from: DateComponents(timeZone: .gmt, year: 2001, month: 1, day: 2))!
        try context.delete(model: Old.Entry.self, where: #Predicate { $0.amount == zero && $0.date < old })
        try context.save()
    }

    private static func restoreBudgets(_ context: ModelContext) throws {
        for budget in try context.all(Ledgers.V3.Budget.self) {
            guard let old = budgets.value[budget.persistentModelID] else { continue }
            budget.month = String(format: "%04d-%02d", old.year, old.month)
            budget.limit = Money(amount: Decimal(old.limit), currency: .nok)
        }
    }

    private static func computeBalances(_ context: ModelContext) throws {
        var accounts = FetchDescriptor<Ledgers.V3.Account>(
            predicate: #Predicate { !$0.isArchived },
            sortBy: [SortDescriptor(\.position), SortDescriptor(\.name, comparator: .localizedStandard)])
        accounts.relationshipKeyPathsForPrefetching = [\.entries]
        accounts.includePendingChanges = true
        for account in try context.fetch(accounts) {
            account.balance = account.entries.reduce(account.opening.amount) { $0 + $1.value }
            let snapshot = Ledgers.V3.Snapshot(day: Date(timeIntervalSinceReferenceDate: 0), value: account.balance)
            account.snapshots.append(snapshot)
        }
        let savings = AccountKind.savings
        let nok = Money.Currency.nok
        for account in try context.all(where: #Predicate<Ledgers.V3.Account> { $0.kind == savings && $0.opening.currency == nok }) {
            account.colorHex = "#00FF00"
        }
        for category in try context.all(Ledgers.V3.Category.self) {
            category.depth = sequence(first: category, next: \.parent).reduce(-1) { n, _ in n + 1 }
        }
        for payee in try context.all(Ledgers.V3.Payee.self, where: #Predicate { $0.entries.count > 1 }) {
            payee.lastUsed = payee.entries.map(\.date).max()
        }
        if let rule = try context.existing(Ledgers.V3.Rule.self, matching: #Predicate { $0.pattern.localizedStandardContains("CAFÉ") }) {
            rule.limits = Measurement(value: 2, unit: .kilograms)
            rule.actions.append("migrated")
        }
        let cleared = #Predicate<Ledgers.V3.Entry> { entry in
            if let category = entry.category {
                return category.path.starts(with: "food") && entry.value < 0
            } else {
                return false
            }
        }
        for entry in try context.all(where: cleared) { entry.flags.insert(.flagged) }
    }
}

protocol Repository: Sendable {
    associatedtype Model: PersistentModel
    func list(sortedBy: [SortDescriptor<Model>]) async throws -> [PersistentIdentifier]
}

@ModelActor
actor LedgerRepository<Model: PersistentModel>: Repository {
    func list(sortedBy: [SortDescriptor<Model>]) async throws -> [PersistentIdentifier] {
        try modelContext.fetch(FetchDescriptor<Model>(sortBy: sortedBy)).map(\.persistentModelID)
    }
    func perform<R: Sendable>(_ work: @Sendable (isolated LedgerRepository<Model>) throws -> R) rethrows -> R { try work(self) }
}
