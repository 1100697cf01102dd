// swift-format-ignore-file
//
//  Clinic.swift
//  The models, and a stage from a version to itself
//

import Foundation
import Instar

enum ClinicV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Visit.self] }

    @Model final class Visit {
        var patient: String
        var minutes: Int
        var isPaid: Bool
        var isOpen = true
        var notes: String?
        init(patient: String, minutes: Int, isPaid: Bool, notes: String? = nil) {
            self.patient = patient
            self.minutes = minutes
            self.isPaid = isPaid
            self.notes = notes
        }
    }
}

enum ClinicV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Visit.self] }

    @Model final class Visit {
        @Attribute(originalName: "patient") var name: String
        var minutes: Int
        var isPaid: Bool
        var notes: String?
        init(name: String, minutes: Int, isPaid: Bool) {
            self.name = name
            self.minutes = minutes
            self.isPaid = isPaid
        }
    }
}

enum ClinicPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [ClinicV1.self, ClinicV2.self] }
    static var stages: [MigrationStage] {
        [
            .lightweight(fromVersion: ClinicV1.self, toVersion: ClinicV1.self),
            .custom(
                fromVersion: ClinicV1.self, toVersion: ClinicV2.self,
                willMigrate: { context in
                    let due = FetchDescriptor(predicate: ClinicV1.Visit.isDue(after: 30))
                    for visit in try context.fetch(due) { visit.notes = "due" }
                    try context.save()
                }, didMigrate: nil)
        ]
    }
}
