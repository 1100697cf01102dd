// swift-format-ignore-file
//
//  Filters.swift
//  Predicates made of many others, and of expressions, in a file that imports Foundation only
//

import Foundation

extension ClinicV1.Visit {
    typealias Visit = ClinicV1.Visit

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
