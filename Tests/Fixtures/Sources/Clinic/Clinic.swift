// swift-format-ignore-file
//
//  Clinic.swift
//  Predicates made of many others, and of expressions
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

        static func isDue(after minutes: Int) -> Predicate<Visit> {
            let isLong = #Predicate<Visit> { $0.minutes > minutes }
            let isUnpaid = #Predicate<Visit> { !$0.isPaid }
            let isNamed = #Predicate<Visit> { !$0.patient.isEmpty }
            let hasNotes = #Predicate<Visit> { $0.notes != nil }
            let isKnown = #Predicate<Visit> { $0.patient != "nobody" }
            let isShort = #Predicate<Visit> { $0.minutes < 500 }
            let wasAsked = #Predicate<Visit> { $0.notes?.contains("asked") == true }
            let initials = #Expression<Visit, Int> { $0.patient.count }
            return #Predicate<Visit> { visit in
                isLong.evaluate(visit) && isUnpaid.evaluate(visit) && isNamed.evaluate(visit)
                    && (hasNotes.evaluate(visit) || visit.isOpen) && isKnown.evaluate(visit)
                    && isShort.evaluate(visit) && !wasAsked.evaluate(visit)
                    && initials.evaluate(visit) > 2 && initials.evaluate(visit) < 20
            }
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
