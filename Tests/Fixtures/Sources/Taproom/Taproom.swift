// swift-format-ignore-file
//
//  Taproom.swift
//  Models that are Codable or Comparable themselves, a catalogue of models, properties that are in memory only
//

import Foundation
import Instar

public enum TaproomV1: VersionedSchema {
    public static var versionIdentifier: Schema.Version { .init(0, 1, 3) }
    public static var models: [any PersistentModel.Type] { [Tap.self, Pour.self] }

    @Model
    public final class Tap: Codable {
        @Attribute(.unique)
        public var uid: String
        public var state: TapState
        var flavours: Set<String> = []
        private(set) var opened = Date()
        @Attribute(.ephemeral)
        public var lastReading: Reading?
        private var _note: String?
        var note: String? {
            get { _note }
            set { _note = newValue }
        }

        @Relationship(deleteRule: .cascade, inverse: \Pour.tap?)
        private(set) var pours: [Pour]? = [Pour]()

        @Attribute(.ephemeral)
        var total: Double {
            pours!.reduce(into: 0.0) { $0 += $1.litres }
        }

        @Transient private var cache: (Date, String)?
        @Transient var cleaning: Task<Void, any Error>?

        private enum CodingKeys: String, CodingKey {
            case uid
            case state
        }

        public init(uid: String, opened: Date? = Date()) {
            self.uid = uid
            state = .waiting
        }

        public required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            self.uid = try container.decode(String.self, forKey: .uid)
            self.state = try container.decode(TapState.self, forKey: .state)
            self.lastReading = nil
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(uid, forKey: .uid)
            try container.encode(state, forKey: .state)
        }

        func add(_ pour: Pour) {
            pours!.append(pour)
        }

        func remove(_ pour: Pour) {
            if let index = pours!.firstIndex(of: pour) {
                pours!.remove(at: index)
            }
        }
    }

    @Model
    public final class Pour {
        private(set) var litres: Double
        private(set) var time: Date
        var tap: Tap?

        init(litres: Double, time: Date = Date()) {
            self.litres = litres
            self.time = time
        }
    }
}

public enum TapState: Codable, Hashable {
    case waiting
    case failed(code: Int, reason: String?)
    case open(Double)
}

public struct Reading: Codable, Sendable {
    public var degrees: Double
}

public enum TaproomV2: VersionedSchema {
    public static var versionIdentifier: Schema.Version { .init(0, 1, 4) }
    public static var models: [any PersistentModel.Type] { Catalogue.current }
}

enum Catalogue {
    static let current: [any PersistentModel.Type] = [Tap.self, Pour.self, Label.self]
}

@Model
public final class Tap {
    @Attribute(.unique) public var uid: String
    public var state: TapState
    var flavours: Set<String> = []
    private(set) var opened = Date()
    @Attribute(originalName: "_note") private var remark: String?
    @Attribute(.ephemeral) var isSelected: Bool
    @Relationship(deleteRule: .cascade, inverse: \Pour.tap) private(set) var pours: [Pour]? = []
    var label: Label?
    var served: Duration = Duration.zero

    public init(uid: String) {
        self.uid = uid
        state = .waiting
        isSelected = false
    }
}

@Model
public final class Pour {
    @Attribute(originalName: "litres") private(set) var amount: Double
    private(set) var time: Date
    var tap: Tap?

    init(amount: Double, time: Date) {
        self.amount = amount
        self.time = time
    }
}

@Model
public final class Label: Comparable {
    public var text: String = ""
    @Relationship(inverse: \Tap.label) package var tap: Tap?

    package init(text: String) { self.text = text }

    convenience init?(path: String) {
        guard !path.isEmpty else { return nil }
        self.init(text: path)
    }

    public static func < (lhs: Label, rhs: Label) -> Bool { lhs.text < rhs.text }
}

extension Tap {
    static func fetch(for uid: String, in context: ModelContext) throws -> Tap? {
        let predicate = #Predicate<Tap> { model in
            model.uid == uid
        }
        var descriptor = FetchDescriptor(predicate: predicate)
        descriptor.fetchLimit = 1
        return try context.fetch(descriptor).first
    }
}

public struct TaproomPlan: SchemaMigrationPlan {
    public static var schemas: [any VersionedSchema.Type] { [TaproomV1.self, TaproomV2.self] }
    public static var stages: [MigrationStage] { [labels] }

    static let labels = MigrationStage.custom(fromVersion: TaproomV1.self, toVersion: TaproomV2.self) { _ in

    } didMigrate: { context in
        do {
            guard let north = try Tap.fetch(for: "north", in: context) else { return }
            north.label = [Label(text: "stout"), Label(path: "ale"), Label(path: "")].compactMap { $0 }.min()
            north.state = .failed(code: north.flavours.count, reason: nil)
            for tap in try context.fetch(FetchDescriptor<Tap>()) {
                tap.served = (tap.pours ?? []).map { Duration.seconds($0.amount) }.reduce(.zero, +)
                tap.isSelected = true
            }
            try context.save()
        } catch {
            fatalError(error.localizedDescription)
        }
    }
}
