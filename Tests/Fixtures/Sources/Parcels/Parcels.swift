// swift-format-ignore-file
//
//  Parcels.swift
//  Constants in models, and markers where they do nothing
//

import Foundation
import Instar

public enum ParcelsV1: VersionedSchema {
    public static var versionIdentifier = Schema.Version(1, 0, 0)
    public static var models: [any PersistentModel.Type] { [Parcel.self, Stop.self] }

    @Model public final class Parcel {
        @Attribute(.unique) public let id: UUID
        public let createdAt: Date
        let kind: Kind
        let weight = 1.5
        @Relationship(deleteRule: .cascade, inverse: \Stop.parcel) var stops: [Stop] = []
        @Transient var label: String { "\(kind.rawValue) \(weight)" }
        @Transient func reset() { stops = [] }

        init(id: UUID, createdAt: Date, kind: Kind) {
            self.id = id
            self.createdAt = createdAt
            self.kind = kind
        }
    }

    @Model final class Stop {
        let place: String
        var parcel: Parcel?
        init(_ place: String) { self.place = place }
    }

    enum Kind: String, Codable { case letter, box }
}

enum ParcelsV2: VersionedSchema {
    static var versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Parcel.self, Stop.self] }

    @Model final class Parcel {
        @Attribute(.unique) let id: UUID
        @Attribute(originalName: "createdAt") let sent: Date
        let kind: ParcelsV1.Kind
        let weight: Double
        var summary: String = ""
        @Relationship(deleteRule: .cascade, inverse: \Stop.parcel) var stops: [Stop] = []

        init(id: UUID, sent: Date, kind: ParcelsV1.Kind, weight: Double) {
            self.id = id
            self.sent = sent
            self.kind = kind
            self.weight = weight
        }
    }

    @Model final class Stop {
        let place: String
        var parcel: Parcel?
        init(_ place: String) { self.place = place }
    }
}

enum ParcelsPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [ParcelsV1.self, ParcelsV2.self] }
    static var stages: [MigrationStage] { [v1ToV2] }

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self, willMigrate: nil,
        didMigrate: { context in
            context.undoManager = nil
            let schema = context.container.schema
            for parcel in try context.fetch(FetchDescriptor<ParcelsV2.Parcel>()) {
                let places = parcel.stops.map(\.place).sorted().joined(separator: "-")
                parcel.summary = "\(Schema.entityName(for: ParcelsV2.Parcel.self)) \(schema.encodingVersion) \(parcel.kind.rawValue) \(parcel.weight) \(Int(parcel.sent.timeIntervalSinceReferenceDate)) \(places)"
            }
            try context.save()
        })
}
