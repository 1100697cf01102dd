// swift-format-ignore-file
//
//  Almanac.swift
//  Actors as versions, stages that are functions, and values handed over in a file
//

import Foundation
import Instar

// Apps declared these while the types were not Sendable.
extension MigrationStage: @unchecked @retroactive Sendable {}
extension Schema.Version: @unchecked @retroactive Sendable {}

actor AlmanacV1: VersionedSchema {
    static var models: [any PersistentModel.Type] { [Day.self, Saying.self] }
    static let versionIdentifier = Schema.Version(0, 0, 1)
}

extension AlmanacV1 {
    @Model final class Day {
        var date: Date
        var moon: Int
        var tags: Data
        @Attribute(.preserveValueOnDeletion) var weather: [String: Double]

        init(date: Date, moon: Int, tags: [String], weather: [String: Double]) {
            self.date = date
            self.moon = moon
            self.tags = (try? JSONEncoder().encode(tags)) ?? Data()
            self.weather = weather
        }
    }

    @Model final class Saying {
        var text: String
        init(text: String) { self.text = text }
    }
}

actor AlmanacV2: VersionedSchema {
    static var models: [any PersistentModel.Type] { [Day.self, Saying.self] }
    static let versionIdentifier = Schema.Version(0, 0, 2)
}

extension AlmanacV2 {
    protocol Tagged { var tags: [String] { get set } }

    enum Phase: Int, Codable { case new, waxing, full, waning }

    @Model final class Day: Tagged {
        var date: Date
        var _phase: Phase?
        @Attribute(originalName: "tags") private var _tags: Data
        var warmest: Double?
        var log: String = ""

        var phase: Phase {
            get { _phase ?? .new }
            set { _phase = newValue }
        }

        var tags: [String] {
            get { (try? JSONDecoder().decode([String].self, from: _tags)) ?? [] }
            set { _tags = (try? JSONEncoder().encode(newValue)) ?? Data() }
        }

        init(date: Date, tags: [String]) {
            self.date = date
            self._tags = (try? JSONEncoder().encode(tags)) ?? Data()
        }
    }

    @Model final class Saying {
        var text: String
        var day: Date?
        init(text: String) { self.text = text }
    }
}

enum AlmanacPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [AlmanacV1.self, AlmanacV2.self] }
    static var stages: [MigrationStage] { [Stage().stage] }

    /// A day of version 1, from closure to closure.
    private struct Kept: Codable {
        var date: Date
        var moon: Int
        var warmest: Double?
    }

    private static let file = URL.applicationSupportDirectory.appendingPathComponent("Almanac/days.json")
    private static let list = URL.documentsDirectory.appending(path: "sayings.txt")

    final class Stage {
        private var count = 0

        var stage: MigrationStage {
            .custom(
                fromVersion: AlmanacV1.self, toVersion: AlmanacV2.self,
                willMigrate: keep(context:), didMigrate: restore(_:))
        }

        func keep(context: ModelContext) throws {
            context.author = "almanac"
            var kept: [Kept] = []
            try context.enumerate(FetchDescriptor<AlmanacV1.Day>(sortBy: [SortDescriptor(\.date)]), batchSize: 2) { day in
                autoreleasepool {
                    kept.append(Kept(date: day.date, moon: day.moon, warmest: day.weather["max"]))
                }
            }
            count = kept.count
            try FileManager.default.createDirectory(
                at: AlmanacPlan.file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try JSONEncoder().encode(kept).write(to: AlmanacPlan.file, options: .atomic)
            let sayings = try context.fetch(FetchDescriptor<AlmanacV1.Saying>())
            try sayings.map(\.text).joined(separator: "\n").write(to: AlmanacPlan.list, atomically: true, encoding: .utf8)
            try context.delete(model: AlmanacV1.Saying.self)
            try context.save()
        }

        func restore(_ context: ModelContext) throws {
            let kept = try JSONDecoder().decode([Kept].self, from: Data(contentsOf: AlmanacPlan.file))
            let changes = try AlmanacPlan.changes(in: context)
            for (day, old) in zip(
                try context.fetch(FetchDescriptor<AlmanacV2.Day>(sortBy: [SortDescriptor(\.date)])), kept
            ) where day.date == old.date {
                day.phase = AlmanacV2.Phase(rawValue: old.moon) ?? .new
                day.warmest = old.warmest
                day.tags.append("of \(count)")
                day.log = changes
            }
            for text in try String(contentsOf: AlmanacPlan.list, encoding: .utf8).split(separator: "\n") {
                context.insert(AlmanacV2.Saying(text: text.uppercased()))
            }
            try FileManager.default.removeItem(at: AlmanacPlan.file)
        }
    }

    @Sendable
    private static func changes(in context: ModelContext) throws -> String {
        let transactions = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
        return transactions.flatMap(\.changes).map { change in
            switch change {
            case .insert: "+"
            case .update: "*"
            case .delete: "-"
            }
        }.sorted().joined()
    }
}
