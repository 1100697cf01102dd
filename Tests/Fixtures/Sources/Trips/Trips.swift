// swift-format-ignore-file
//
//  Models.swift
//  Trips
//

import Foundation
import Instar

typealias Trip = TripsSchemaV3.Trip
typealias BusinessTrip = TripsSchemaV3.BusinessTrip
typealias PersonalTrip = TripsSchemaV3.PersonalTrip
typealias LivingAccommodation = TripsSchemaV3.LivingAccommodation

enum TripsSchemaV1: VersionedSchema {
    static var versionIdentifier = Schema.Version(1, 0, 0)

    static var models: [any PersistentModel.Type] {
        [Trip.self, LivingAccommodation.self]
    }

    @Model
    class Trip {
        var name: String
        var destination: String
        @Attribute(originalName: "start_date") var startDate: Date
        @Attribute(originalName: "end_date") var endDate: Date

        @Relationship(deleteRule: .cascade, inverse: \LivingAccommodation.trip)
        var livingAccommodation: LivingAccommodation?

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture) {
            self.name = name
            self.destination = destination
            self.startDate = startDate
            self.endDate = endDate
        }
    }

    @Model
    class LivingAccommodation {
        var address: String
        var placeName: String
        var trip: Trip?

        init(address: String, placeName: String) {
            self.address = address
            self.placeName = placeName
        }
    }
}

enum TripsSchemaV2: VersionedSchema {
    static var versionIdentifier = Schema.Version(2, 0, 0)

    static var models: [any PersistentModel.Type] {
        [Trip.self, LivingAccommodation.self]
    }

    @Model
    class Trip {
        #Unique<Trip>([\.name, \.startDate, \.endDate])
        #Index<Trip>([\.name], [\.startDate], [\.endDate], [\.name, \.startDate, \.endDate])

        @Attribute(.preserveValueOnDeletion)
        var name: String
        var destination: String
        @Attribute(.preserveValueOnDeletion)
        var startDate: Date
        @Attribute(.preserveValueOnDeletion)
        var endDate: Date

        @Relationship(deleteRule: .cascade, inverse: \LivingAccommodation.trip)
        var livingAccommodation: LivingAccommodation?

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture) {
            self.name = name
            self.destination = destination
            self.startDate = startDate
            self.endDate = endDate
        }
    }

    @Model
    class LivingAccommodation {
        var address: String
        var placeName: String
        var trip: Trip?

        init(address: String, placeName: String) {
            self.address = address
            self.placeName = placeName
        }
    }
}

enum TripsSchemaV3: VersionedSchema {
    static var versionIdentifier = Schema.Version(3, 0, 0)

    static var models: [any PersistentModel.Type] {
        [Trip.self, BusinessTrip.self, PersonalTrip.self, LivingAccommodation.self]
    }

    @Model
    class Trip {
        #Unique<Trip>([\.name, \.startDate, \.endDate])
        #Index<Trip>([\.name], [\.startDate], [\.endDate], [\.name, \.startDate, \.endDate])

        var name: String
        var destination: String
        var startDate: Date
        var endDate: Date

        @Relationship(deleteRule: .cascade, inverse: \LivingAccommodation.trip)
        var livingAccommodation: LivingAccommodation?

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture) {
            self.name = name
            self.destination = destination
            self.startDate = startDate
            self.endDate = endDate
        }
    }

    @available(iOS 26, macOS 26, *)
    @Model
    class BusinessTrip: Trip {
        var perdiem: Double = 0.0

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture, perdiem: Double) {
            self.perdiem = perdiem
            super.init(name: name, destination: destination, startDate: startDate, endDate: endDate)
        }
    }

    @available(iOS 26, macOS 26, *)
    @Model
    class PersonalTrip: Trip {
        enum Reason: String, CaseIterable, Codable, Identifiable {
            case family
            case reunion
            case wellness
            case unknown

            var id: Self { self }
        }

        var reason: Reason

        init(name: String, destination: String, startDate: Date = .now, endDate: Date = .distantFuture, reason: Reason) {
            self.reason = reason
            super.init(name: name, destination: destination, startDate: startDate, endDate: endDate)
        }
    }

    @Model
    class LivingAccommodation {
        var address: String
        var placeName: String
        var isConfirmed: Bool = false
        var trip: Trip?

        init(address: String, placeName: String, isConfirmed: Bool = false) {
            self.address = address
            self.placeName = placeName
            self.isConfirmed = isConfirmed
        }
    }
}

enum TripsMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
        [TripsSchemaV1.self, TripsSchemaV2.self, TripsSchemaV3.self]
    }

    static var stages: [MigrationStage] {
        [migrateV1toV2, migrateV2toV3]
    }

    static let migrateV1toV2 = MigrationStage.custom(
        fromVersion: TripsSchemaV1.self,
        toVersion: TripsSchemaV2.self,
        willMigrate: { context in
            let trips = try? context.fetch(FetchDescriptor<TripsSchemaV1.Trip>())
            var seen = Set<String>()
            for trip in trips ?? [] {
                if !seen.insert("\(trip.name)\(trip.startDate)\(trip.endDate)").inserted {
                    context.delete(trip)
                }
            }
            try? context.save()
        },
        didMigrate: nil
    )

    static let migrateV2toV3 = MigrationStage.lightweight(
        fromVersion: TripsSchemaV2.self,
        toVersion: TripsSchemaV3.self
    )
}

extension Trip {
    var isPast: Bool { endDate < .now }

    static var preview: Trip {
        Trip(name: "Camping!", destination: "Yosemite", startDate: .distantPast, endDate: .distantPast)
    }
}
