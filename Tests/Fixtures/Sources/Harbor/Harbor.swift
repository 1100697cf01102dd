// swift-format-ignore-file
//
//  Harbor.swift
//  Stages that carry values from one version to the next in memory
//

import Foundation
import Instar

enum Flag: String, Codable { case denmark, norway, unknown }

struct HarborSchemaV1: VersionedSchema {
    static let versionIdentifier: Schema.Version = .init(1, 0, 0)
    static let models: [any PersistentModel.Type] = [Ship.self, Ship.Cargo.self, Berth.self, Log.self]

    @Model final class Ship {
        var name: String
        var flagName: String
        var lastSeen: Date?
        var berth: Berth?
        @Relationship(deleteRule: .cascade, inverse: \Cargo.ship) var cargo: [Cargo]? = []
        init(name: String, flagName: String, lastSeen: Date? = nil) {
            self.name = name; self.flagName = flagName; self.lastSeen = lastSeen
        }

        @Model final class Cargo {
            var tons: Int
            var ship: Ship?
            init(tons: Int) { self.tons = tons }
        }
    }

    @Model final class Log {
        var text: String
        var seconds: TimeInterval
        init(text: String, seconds: TimeInterval) { self.text = text; self.seconds = seconds }
    }
}

/// Of all versions.
@Model final class Berth {
    @Attribute(.unique) var number: Int
    init(number: Int) { self.number = number }
}

struct HarborSchemaV2: VersionedSchema {
    static let versionIdentifier: Schema.Version = .init(1, 5, 0)
    static let models: [any PersistentModel.Type] = [Ship.self, Ship.Cargo.self, Berth.self, Entry.self]

    @Model final class Ship {
        @Attribute(.unique) var name: String
        var flag: Flag = Flag.unknown
        var seenBefore: Date?
        var berth: Berth
        @Relationship(deleteRule: .cascade, inverse: \Cargo.ship) var cargo: [Cargo]? = []
        init(name: String, berth: Berth) { self.name = name; self.berth = berth }

        @Model final class Cargo {
            var tons: Int
            var ship: Ship?
            init(tons: Int) { self.tons = tons }
        }
    }

    @Model final class Entry {
        private(set) var identifier = UUID()
        var text: String
        var time: Date
        init(text: String, time: Date) { self.text = text; self.time = time }
    }
}

/// The same models under a later version.
struct HarborSchemaV3: VersionedSchema {
    static let versionIdentifier: Schema.Version = .init(2, 0, 0)
    static let models = HarborSchemaV2.models
}

typealias Ship = HarborSchemaV2.Ship
typealias Entry = HarborSchemaV2.Entry

enum HarborMigrationPlan: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [HarborSchemaV3.self, HarborSchemaV1.self, HarborSchemaV2.self]
    static var stages: [MigrationStage] {
        [.lightweight(fromVersion: HarborSchemaV2.self, toVersion: HarborSchemaV3.self), v1ToV2]
    }

    nonisolated(unsafe) private static var seen = [PersistentIdentifier: Date]()
    nonisolated(unsafe) private static var flags: [(id: PersistentIdentifier, name: String)] = []
    nonisolated(unsafe) private static var oldLogs = [HarborSchemaV1.Log]()

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: HarborSchemaV1.self,
        toVersion: HarborSchemaV2.self
    ) { context in
        try rename(in: context)
        try berth(in: context)
        for ship in try context.fetch(FetchDescriptor<HarborSchemaV1.Ship>()) {
            seen[ship.persistentModelID] = ship.lastSeen
            flags.append((ship.persistentModelID, ship.flagName))
        }
        // Read again when they are gone.
        oldLogs = try context.fetch(FetchDescriptor(sortBy: [SortDescriptor(\.seconds)]))
        oldLogs.forEach { context.delete($0) }
        try context.save()
    } didMigrate: { context in
        for (id, date) in seen {
            (context.model(for: id) as? Ship)?.seenBefore = date
        }
        for (id, name) in flags {
            guard let ship = context.model(for: id) as? Ship else { continue }
            ship.flag = Flag(rawValue: name) ?? .unknown
        }
        for log in oldLogs {
            context.insert(Entry(text: log.text, time: Date(timeIntervalSinceReferenceDate: log.seconds)))
        }
        try? context.save()
        oldLogs = []
    }

    private static func rename(in context: ModelContext) throws {
        let ships = try context.fetch(FetchDescriptor<HarborSchemaV1.Ship>(sortBy: [SortDescriptor(\.name)]))
        for (name, ships) in Dictionary(grouping: ships, by: \.name) where ships.count > 1 {
            for (number, ship) in ships.dropFirst().enumerated() { ship.name = "\(name) \(number + 2)" }
        }
    }

    private static func berth(in context: ModelContext) throws {
        let adrift = try context.fetch(FetchDescriptor<HarborSchemaV1.Ship>(predicate: #Predicate { $0.berth == nil }))
        guard !adrift.isEmpty else { return }
        let roads = Berth(number: 0)
        context.insert(roads)
        for ship in adrift { ship.berth = roads }
    }
}
