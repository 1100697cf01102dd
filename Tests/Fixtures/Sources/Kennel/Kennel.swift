// swift-format-ignore-file
//
//  Kennel.swift
//  Models nested in models, a self-reference, and objects of the next version kept through a stage
//

import Foundation
import Instar

public typealias KennelDog = KennelV2.Dog

public enum KennelV1: @preconcurrency VersionedSchema {
    @MainActor public static var versionIdentifier = Schema.Version(1, 0, 0)
    public static var models: [any PersistentModel.Type] {
        [Dog.self, Dog.Stay.self, Owner.self]
    }
}

public enum KennelV2: @preconcurrency VersionedSchema {
    @MainActor public static let versionIdentifier: Schema.Version = .init(2, 0, 0)
    @MainActor public static var models: [any PersistentModel.Type] {
        if #available(iOS 26, macOS 26, *) {
            return [KennelV2.Dog.self, GuideDog.self, Owner.self, Invoice.self, Invoice.Line.self]
        }
        return [KennelV2.Dog.self, Owner.self, Invoice.self, Invoice.Line.self]
    }
}

enum KennelPlan: @preconcurrency SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [KennelV1.self, KennelV2.self] }
    @MainActor static var stages: [MigrationStage] { [stays] }

    nonisolated(unsafe) private static var lastStays = [PersistentIdentifier: Date]()
    nonisolated(unsafe) private static var invoices: [KennelV2.Invoice] = []

    @MainActor static let stays = MigrationStage.custom(fromVersion: KennelV1.self, toVersion: KennelV2.self) { context in
        let dogs = try context.fetch(FetchDescriptor<KennelV1.Dog>(sortBy: [.init(\.chip)]))
        for dog in dogs where !dog.stays.isEmpty {
            lastStays[dog.persistentModelID] = dog.stays.map(\.from).max()
            invoices.append(KennelV2.Invoice(chip: dog.chip, lines: dog.stays.map {
                KennelV2.Invoice.Line(nights: $0.nights)
            }))
        }
        invoices.sort { $0.nights > $1.nights }
    } didMigrate: { context in
        for (identifier, date) in lastStays {
            if let dog = context.model(for: identifier) as? KennelDog {
                dog.lastStay = date
            }
        }
        for invoice in invoices { context.insert(invoice) }
        for dog in try context.fetch(FetchDescriptor<KennelDog>()) where dog.record.trainings["guide"] != nil {
            context.insert(KennelV2.GuideDog(chip: "g-" + dog.chip, name: dog.name, school: .city))
        }
        try context.save()
        let city = KennelV2.GuideDog.School.city
        let ofTheCity = #Predicate<KennelDog> {
            if let guide = $0 as? KennelV2.GuideDog { return guide.school == city } else { return false }
        }
        for guide in try context.fetch(FetchDescriptor(predicate: ofTheCity)) { guide.name += " (guide)" }
        try? context.save()
    }
}

extension MigrationStage {
    var summary: String {
        switch self {
        case .lightweight(fromVersion: let from, toVersion: let to):
            "\(from.versionIdentifier) to \(to.versionIdentifier)"
        case let .custom(fromVersion: from, toVersion: to, willMigrate: before, didMigrate: after):
            "\(from.versionIdentifier) to \(to.versionIdentifier), \(before == nil ? "no" : "a") willMigrate, \(after == nil ? "no" : "a") didMigrate"
        }
    }
}
