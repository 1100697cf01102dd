// swift-format-ignore-file
//
//  Observatory.swift
//  Night sky log: store access away from the main actor, filters made of filters
//

import Foundation
import Instar

enum Quality: Int, Codable, Comparable, CaseIterable {
    case poor, fair, good
    static func < (lhs: Quality, rhs: Quality) -> Bool { lhs.rawValue < rhs.rawValue }
}

protocol Stamped: PersistentModel {
    var changed: Foundation.Date { get set }
}

@Model
public final class Night: Stamped, CustomStringConvertible, @unchecked Sendable {
    #Unique([\Night.place, \Night.begin], [])
    #Index([\Night.begin])

    var place: String
    var begin: Date
    var changed: Foundation.Date = Date.distantPast
    var moon: Range<Double>?
    var remarks: Optional<String>
    fileprivate(set) var seeing: Quality = Quality.fair
    @Relationship(
        deleteRule: .cascade,
        inverse: \Sighting.night
    )
    public private(set) var sightings: Array<Sighting> = []
    @Transient var draft: String! = "" {
        didSet { remarks = draft }
    }
    @Transient var isEmpty: Bool { sightings.isEmpty }

    public var description: String { "\(place) \(sightings.count)" }

    init(place: String, begin: Date, remarks: String? = nil) {
        self.place = place
        self.begin = begin
        self.remarks = remarks
    }

    convenience init?(line: String) {
        let parts = line.split(separator: ";")
        guard parts.count == 2, let seconds = Double(parts[1]) else { return nil }
        self.init(place: String(parts[0]), begin: Date(timeIntervalSinceReferenceDate: seconds))
    }

    func add(_ sighting: Sighting) { sightings.append(sighting) }
}

@Model
public final class Sighting: Codable, Comparable {
    enum CodingKeys: String, CodingKey { case object, magnitude }

    var object: String
    var magnitude: Double!
    var frames: [String: [Int]] = [:]
    var night: Night?

    init(object: String, magnitude: Double) throws {
        guard !object.isEmpty else { throw ObservatoryError.noObject }
        self.object = object
        self.magnitude = magnitude
    }

    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        object = try container.decode(String.self, forKey: .object)
        magnitude = try container.decode(Double.self, forKey: .magnitude)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(object, forKey: .object)
        try container.encode(magnitude, forKey: .magnitude)
    }

    public static func < (lhs: Sighting, rhs: Sighting) -> Bool { lhs.object < rhs.object }
}

enum ObservatoryError: Error { case noObject }

// MARK: - Filters

struct SightingFilter {
    var text: String?
    var brighterThan: Double?
    var places: Set<String> = []

    var predicate: Predicate<Sighting> {
        var parts: [Predicate<Sighting>] = []
        if let text {
            parts.append(#Predicate { $0.object.localizedStandardContains(text) })
        }
        if let brighterThan {
            parts.append(#Predicate { $0.magnitude.flatMap { $0 < brighterThan } ?? false })
        }
        if !places.isEmpty {
            let isThere = #Predicate<Night> { places.contains($0.place) }
            parts.append(#Predicate { sighting in
                if let night = sighting.night { isThere.evaluate(night) } else { false }
            })
        }
        return parts.reduce(#Predicate { _ in true }) { all, next in
            #Predicate { all.evaluate($0) && next.evaluate($0) }
        }
    }
}

extension FetchDescriptor where T == Night {
    static func nights(with filter: SightingFilter) -> Self {
        let isWanted = filter.predicate
        var descriptor = FetchDescriptor(
            predicate: #Predicate { night in night.sightings.contains { isWanted.evaluate($0) } },
            sortBy: [.init(\.begin, order: .reverse)])
        descriptor.relationshipKeyPathsForPrefetching = [\.sightings]
        descriptor.propertiesToFetch = [\.id, \.place, \.begin]
        return descriptor
    }
}

// MARK: - Stores

extension PersistentModel {
    static func count(in context: ModelContext) throws -> Int {
        try context.fetchCount(FetchDescriptor<Self>())
    }
}

@ModelActor
final actor Archive {
    private var imported = 0

    func `import`(_ lines: [String], sightings: Data) throws -> [PersistentIdentifier] {
        let nights = lines.compactMap { Night(line: $0) }
        for night in nights {
            modelContext.insert(night)
            for sighting in try JSONDecoder().decode([Sighting].self, from: sightings) { night.add(sighting) }
        }
        try modelContext.save()
        imported += nights.count
        return nights.map(\.persistentModelID).sorted()
    }

    func touch(_ id: PersistentIdentifier, seeing: Quality) throws -> Bool {
        guard let night = self[id, as: Night.self] else { return false }
        night.seeing = seeing
        stamp(night)
        try modelContext.save()
        return true
    }

    func remove(_ id: PersistentIdentifier) throws {
        try modelContext.delete(model: Night.self, where: #Predicate { $0.persistentModelID == id })
        try modelContext.save()
    }

    func values<T: PersistentModel, V: Sendable>(
        _ descriptor: FetchDescriptor<T>, _ transform: @Sendable (T) -> V?
    ) throws -> [V] {
        try modelContext.fetch(descriptor).compactMap(transform)
    }

    private func stamp<T: Stamped>(_ model: T) { model.changed = .distantFuture }
}

@ModelActor(disableGenerateInit: true)
public actor Watchman {
    private let limit: Int

    init(modelContainer: ModelContainer, limit: Int) {
        self.modelContainer = modelContainer
        let context = ModelContext(modelContainer)
        context.autosaveEnabled = false
        modelExecutor = DefaultSerialModelExecutor(modelContext: context)
        self.limit = limit
    }

    func latest() throws -> [String] {
        var descriptor = FetchDescriptor<Night>(sortBy: [SortDescriptor(\.begin, order: .reverse), SortDescriptor(\.place)])
        descriptor.fetchLimit = limit
        return try modelContext.fetch(descriptor).map(\.description)
    }
}

final class SaveCounter: @unchecked Sendable {
    private(set) var inserted = 0
    private var token: (any NSObjectProtocol)?

    init() {
        token = NotificationCenter.default.addObserver(
            forName: ModelContext.didSave, object: nil, queue: nil
        ) { [weak self] notification in
            let identifiers = notification.userInfo as? [String: [PersistentIdentifier]]
            self?.inserted += identifiers?[ModelContext.NotificationKey.insertedIdentifiers.rawValue]?.count ?? 0
        }
    }
}
