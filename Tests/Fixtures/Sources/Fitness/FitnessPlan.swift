// swift-format-ignore-file
//
//  FitnessPlan.swift
//  A stage with all kinds of fetches, an actor, and a view model
//

import Foundation
import Instar

enum FitMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [FitSchemaV1.self, FitSchemaV2.self] }
    static var stages: [MigrationStage] { [migrateV1toV2] }

    private struct GoalDraft: Sendable {
        let target: Int
        let deadline: String
    }
    private nonisolated(unsafe) static var goals: [PersistentIdentifier: GoalDraft] = [:]

    private static let formatter: DateFormatter = {
        let formatter = DateFormatter()
        formatter.dateFormat = "yyyy-MM-dd"
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        return formatter
    }()

    static let migrateV1toV2 = MigrationStage.custom(
        fromVersion: FitSchemaV1.self,
        toVersion: FitSchemaV2.self,
        willMigrate: { context in
            try deduplicateAthletes(in: context)
            for goal in try context.fetch(FetchDescriptor<FitSchemaV1.Goal>()) {
                goals[goal.persistentModelID] = GoalDraft(target: goal.target, deadline: goal.deadline)
            }
            let missing = #Predicate<FitSchemaV1.Athlete> { $0.email == nil }
            try context.enumerate(FetchDescriptor(predicate: missing), batchSize: 10, allowEscapingMutations: true) { athlete in
                athlete.email = athlete.initials.lowercased() + "@example.com"
            }
            let threshold = Date(timeIntervalSinceReferenceDate: 0)
            try context.delete(model: FitSchemaV1.Activity.self, where: #Predicate { $0.isArchived && $0.start < threshold })
            if context.hasChanges { try context.save() }
        },
        didMigrate: { context in
            try fillGoals(in: context)
            try summarize(in: context)
            try context.save()
        }
    )

    private static func deduplicateAthletes(in context: ModelContext) throws {
        var seen: [String: FitSchemaV1.Athlete] = [:]
        let descriptor = FetchDescriptor<FitSchemaV1.Athlete>(sortBy: [SortDescriptor(\.createdAt, order: .forward), SortDescriptor(\.name)])
        for athlete in try context.fetch(descriptor) {
            let key = athlete.name.lowercased()
            if let first = seen[key] {
                for activity in athlete.activities { activity.athlete = first }
                first.gear.append(contentsOf: athlete.gear)
                context.delete(athlete)
            } else {
                seen[key] = athlete
            }
        }
        try context.save()
    }

    private static func fillGoals(in context: ModelContext) throws {
        for (id, draft) in goals {
            guard let goal = context.model(for: id) as? FitSchemaV2.Goal else { continue }
            goal.target = Double(draft.target)
            goal.deadline = formatter.date(from: draft.deadline)
        }
    }

    private static func summarize(in context: ModelContext) throws {
        var runs = FetchDescriptor<Run>(
            predicate: #Predicate { run in run.distance >= 1_000 && run.seconds > 0 },
            sortBy: [SortDescriptor(\Run.start, order: .reverse)])
        runs.relationshipKeyPathsForPrefetching = [\.shoe, \.splits, \.athlete]
        runs.propertiesToFetch = [\.distance, \.seconds, \.start]
        for run in try context.fetch(runs) {
            run.summary = String(format: "%.1f km, %d splits", run.distance / 1000, run.splits.count)
            run.shoe?.kilometers += run.distance / 1000
            run.athlete?.runCount += 1
            run.climb = run.route.compactMap(\.altitude).max()
        }
        let sessions = try context.fetch(FetchDescriptor<Strength>())
        for session in sessions {
            session.volume = session.sets.reduce(into: 0) { $0 += Double($1.reps) * $1.load.kilograms }
            let best = session.sets.max { $0.load < $1.load }
            best?.isPersonalBest = true
            if let best, let exercise = best.exercise {
                let record = FitSchemaV2.PersonalRecord(exercise: exercise.name, load: best.load, history: [session.start: best.load.kilograms])
                context.insert(record)
                record.athlete = session.athlete
            }
        }
        let zone = 3
        let tagged = #Predicate<Activity> { activity in
            activity.tags.contains { $0.label == "race" } && activity.athlete?.fullName.starts(with: "A") == true
        }
        for activity in try context.fetch(FetchDescriptor(predicate: tagged)) {
            activity.intensity = .heartRate(zone: zone)
            activity.touch(Date(timeIntervalSinceReferenceDate: 9))
        }
        let isRun = #Predicate<Activity> { $0 is Run }
        guard try context.fetchCount(FetchDescriptor(predicate: isRun)) == 2 else { throw CocoaError(.featureUnsupported) }
    }
}

// MARK: - Data access

@ModelActor
actor FitStore {
    private(set) var lastError: (any Error)?

    func importRuns(_ rows: [(Date, TimeInterval, Double)], for id: PersistentIdentifier) async throws -> Int {
        guard let athlete = self[id, as: Athlete.self] else { return 0 }
        for row in rows {
            let run = Run(start: row.0, seconds: row.1, distance: row.2)
            run.athlete = athlete
            modelContext.insert(run)
        }
        try modelContext.save()
        await Task.yield()
        return try modelContext.fetchCount(FetchDescriptor<Run>())
    }

    func longest(limit: Int = 3) throws -> [PersistentIdentifier] {
        var descriptor = FetchDescriptor<Run>(sortBy: [.init(\.distance, order: .reverse)])
        descriptor.fetchLimit = limit
        return try modelContext.fetchIdentifiers(descriptor)
    }
}

@MainActor
@Observable
final class FitModel {
    let container: ModelContainer
    private(set) var athletes: [Athlete] = []
    init(inMemory: Bool) throws {
        let schema = Schema(versionedSchema: FitSchemaV2.self)
        let configuration = ModelConfiguration(schema: schema, isStoredInMemoryOnly: inMemory)
        container = try ModelContainer(for: schema, migrationPlan: FitMigrationPlan.self, configurations: [configuration])
    }
    func reload() {
        do {
            athletes = try container.mainContext.fetch(FetchDescriptor<Athlete>(sortBy: [SortDescriptor(\.fullName, comparator: .localizedStandard)]))
        } catch { print("failed: \(error.localizedDescription)") }
    }
    func add(_ name: String) async {
        let athlete = Athlete(fullName: name)
        container.mainContext.insert(athlete)
        try? container.mainContext.save()
        let id = athlete.persistentModelID
        let store = FitStore(modelContainer: container)
        await Task.detached(priority: .background) {
            _ = try? await store.importRuns([(.now, 60, 200)], for: id)
        }.value
        reload()
    }
}
