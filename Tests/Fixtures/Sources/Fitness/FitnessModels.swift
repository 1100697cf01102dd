// swift-format-ignore-file
//
//  FitnessModels.swift
//  Activities that inherit, in two versions
//

import Foundation
import Instar

// MARK: - Shared value types

public enum MuscleGroup: String, Codable, CaseIterable, Identifiable, Sendable {
    case chest, back, legs, shoulders, arms, core
    public var id: Self { self }
    var title: String { rawValue.capitalized }
}

enum SetKind: Int, Codable, Hashable { case warmup = 0, working, dropset, failure }

struct Load: Codable, Hashable, Comparable {
    var kilograms: Double
    var isBodyweight = false
    static let zero = Load(kilograms: 0)
    static func < (lhs: Load, rhs: Load) -> Bool { lhs.kilograms < rhs.kilograms }
}

struct GeoPoint: Codable, Equatable {
    let latitude: Double
    let longitude: Double
    var altitude: Double?
}

enum Intensity: Codable, Hashable {
    case none
    case heartRate(zone: Int)
    case power(watts: Double, ftp: Double?)
}

protocol Timestamped: AnyObject {
    var createdAt: Date { get set }
    var updatedAt: Date? { get set }
}
extension Timestamped {
    func touch(_ date: Date = .now) { updatedAt = date }
}

protocol Archivable: PersistentModel { var isArchived: Bool { get set } }
extension Archivable {
    static func active() -> FetchDescriptor<Self> { FetchDescriptor<Self>() }
}

// MARK: - Version 1

enum FitSchemaV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
        [Athlete.self, Activity.self, Run.self, Strength.self, ExerciseSet.self, Exercise.self, Gear.self, Goal.self, Split.self, Tag.self]
    }
}

extension FitSchemaV1 {
    @Model
    final class Athlete: Timestamped {
        @Attribute(.unique) var id: UUID = UUID()
        var name: String
        var email: String?
        var birthday: Date?
        var weights: [Double] = []
        var home: GeoPoint?
        var createdAt: Date = Date.now
        var updatedAt: Date?
        @Relationship(deleteRule: .cascade, inverse: \Activity.athlete) var activities: [Activity] = []
        @Relationship(deleteRule: .cascade, inverse: \Goal.athlete) var goals: [Goal]? = []
        @Relationship(deleteRule: .nullify, inverse: \Gear.owner) var gear: [Gear] = []

        init(name: String, email: String? = nil) {
            self.name = name
            self.email = email
        }

        var totalDistance: Double { activities.compactMap { $0 as? Run }.reduce(0) { $0 + $1.meters } }
        var initials: String { name.split(separator: " ").compactMap(\.first).map(String.init).joined() }
    }

    @available(iOS 26, *)
    @Model
    class Activity: Timestamped, Archivable {
        #Index<Activity>([\.start], [\.kindRaw, \.start])
        @Attribute(.unique) var uuid: String
        var start: Date
        var duration: TimeInterval
        var kindRaw: String
        var notes: String
        var isArchived: Bool = false
        var intensity: Intensity = Intensity.none
        var createdAt: Date = Date.now
        var updatedAt: Date?
        var athlete: Athlete?
        @Relationship(inverse: \Tag.activities) var tags: [Tag] = []

        init(uuid: String = UUID().uuidString, start: Date, duration: TimeInterval, kind: String, notes: String = "") {
            self.uuid = uuid
            self.start = start
            self.duration = duration
            self.kindRaw = kind
            self.notes = notes
        }
        var end: Date { start.addingTimeInterval(duration) }
    }

    @available(iOS 26, *)
    @Model
    final class Run: Activity {
        var meters: Double
        var route: [GeoPoint] = []
        var shoe: Gear?
        @Relationship(deleteRule: .cascade, inverse: \Split.run) var splits: [Split] = []
        init(start: Date, duration: TimeInterval, meters: Double) {
            self.meters = meters
            super.init(start: start, duration: duration, kind: "run")
        }
        var pace: Double { meters > 0 ? duration / (meters / 1000) : 0 }
    }

    @available(iOS 26, *)
    @Model
    final class Strength: Activity {
        @Relationship(deleteRule: .cascade, inverse: \ExerciseSet.session) var sets: [ExerciseSet] = []
        init(start: Date, duration: TimeInterval) { super.init(start: start, duration: duration, kind: "strength") }
    }

    @Model
    final class ExerciseSet {
        var order: Int
        var reps: Int
        var load: Load
        var kind: SetKind
        var session: Strength?
        var exercise: Exercise?
        init(order: Int, reps: Int, load: Load, kind: SetKind = .working, exercise: Exercise? = nil) {
            (self.order, self.reps, self.load, self.kind, self.exercise) = (order, reps, load, kind, exercise)
        }
    }

    @Model
    final class Exercise {
        #Unique<Exercise>([\.name, \.group])
        var name: String
        var group: MuscleGroup
        var secondary: [MuscleGroup] = []
        var instructions: String?
        @Attribute(.externalStorage) var picture: Data?
        @Relationship(inverse: \ExerciseSet.exercise) var sets: [ExerciseSet]?
        init(name: String, group: MuscleGroup) {
            self.name = name
            self.group = group
        }
    }

    @Model
    final class Gear {
        var brand: String
        var model: String
        var price: Decimal?
        var retired: Bool = false
        var owner: Athlete?
        @Relationship(inverse: \Run.shoe) var runs: [Run] = []
        init(brand: String, model: String) { self.brand = brand; self.model = model }
    }

    @Model
    final class Goal {
        var title: String
        var target: Int
        var unit: String
        var deadline: String
        var athlete: Athlete?
        init(title: String, target: Int, unit: String, deadline: String) {
            self.title = title; self.target = target; self.unit = unit; self.deadline = deadline
        }
    }

    @Model
    final class Split {
        var index: Int16
        var seconds: Float
        var run: Run?
        init(_ index: Int16, _ seconds: Float) { self.index = index; self.seconds = seconds }
    }

    @Model
    final class Tag {
        @Attribute(.unique, .spotlight) var label: String
        var activities: [Activity] = []
        init(_ label: String) { self.label = label }
    }
}

// MARK: - Version 2

enum FitSchemaV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] {
        [Athlete.self, Activity.self, Run.self, Ride.self, Strength.self, ExerciseSet.self, Exercise.self, Gear.self, Goal.self, Split.self, Tag.self, PersonalRecord.self]
    }

    @Model
    final class Athlete: Timestamped {
        @Attribute(.unique) var id: UUID = UUID()
        @Attribute(originalName: "name") var fullName: String
        var email: String = ""
        var birthday: Date?
        var weights: [Double] = []
        var home: GeoPoint?
        var createdAt: Date = Date.now
        var updatedAt: Date?
        var runCount: Int = 0
        @Relationship(deleteRule: .cascade, inverse: \Activity.athlete) var activities: [Activity] = []
        @Relationship(deleteRule: .cascade, inverse: \Goal.athlete) var goals: [Goal]? = []
        @Relationship(deleteRule: .nullify, inverse: \Gear.owner) var gear: [Gear] = []
        @Relationship(deleteRule: .cascade, inverse: \PersonalRecord.athlete) var records: [PersonalRecord] = []
        init(fullName: String) { self.fullName = fullName }
    }

    @available(iOS 26, *)
    @Model
    class Activity: Timestamped, Archivable {
        #Index<Activity>([\.start], [\.kindRaw, \.start])
        @Attribute(.unique) var uuid: String
        var start: Date
        @Attribute(originalName: "duration") var seconds: TimeInterval
        var kindRaw: String
        var notes: String?
        var isArchived: Bool = false
        var intensity: Intensity = Intensity.none
        var summary: String = ""
        var createdAt: Date = Date.now
        var updatedAt: Date?
        var athlete: Athlete?
        @Relationship(inverse: \Tag.activities) var tags: [Tag] = []
        init(uuid: String = UUID().uuidString, start: Date, seconds: TimeInterval, kind: String) {
            self.uuid = uuid
            self.start = start
            self.seconds = seconds
            self.kindRaw = kind
        }
    }

    @available(iOS 26, *)
    @Model
    final class Run: Activity {
        @Attribute(originalName: "meters") var distance: Double
        var route: [GeoPoint] = []
        var climb: Double?
        var shoe: Gear?
        @Relationship(deleteRule: .cascade, inverse: \Split.run) var splits: [Split] = []
        init(start: Date, seconds: TimeInterval, distance: Double) {
            self.distance = distance
            super.init(start: start, seconds: seconds, kind: "run")
        }
    }

    @available(iOS 26, *)
    @Model
    final class Ride: Activity {
        var watts: Int?
        init(start: Date, seconds: TimeInterval) { super.init(start: start, seconds: seconds, kind: "ride") }
    }

    @available(iOS 26, *)
    @Model
    final class Strength: Activity {
        @Relationship(deleteRule: .cascade, inverse: \ExerciseSet.session) var sets: [ExerciseSet] = []
        var volume: Double = 0
        init(start: Date, seconds: TimeInterval) { super.init(start: start, seconds: seconds, kind: "strength") }
    }

    @Model
    final class ExerciseSet {
        var order: Int
        var reps: Int
        var load: Load
        var kind: SetKind
        var isPersonalBest: Bool = false
        var session: Strength?
        var exercise: Exercise?
        init(order: Int, reps: Int, load: Load, kind: SetKind = .working) {
            (self.order, self.reps, self.load, self.kind) = (order, reps, load, kind)
        }
    }

    @Model
    final class Exercise {
        #Unique<Exercise>([\.name, \.group])
        var name: String
        var group: MuscleGroup
        var secondary: [MuscleGroup] = []
        var instructions: String?
        @Attribute(.externalStorage) var picture: Data?
        @Relationship(inverse: \ExerciseSet.exercise) var sets: [ExerciseSet]?
        init(name: String, group: MuscleGroup) { self.name = name; self.group = group }
    }

    @Model
    final class Gear {
        var brand: String
        var model: String
        var price: Decimal?
        var retired: Bool = false
        var kilometers: Double = 0
        var owner: Athlete?
        @Relationship(inverse: \Run.shoe) var runs: [Run] = []
        init(brand: String, model: String) { self.brand = brand; self.model = model }
        var displayName: String { "\(brand) \(model)" }
    }

    @Model
    final class Goal {
        var title: String
        var target: Double = 0
        var unit: String
        var deadline: Date?
        var athlete: Athlete?
        init(title: String, unit: String) { self.title = title; self.unit = unit }
    }

    @Model
    final class Split {
        var index: Int16
        var seconds: Float
        var run: Run?
        init(_ index: Int16, _ seconds: Float) { self.index = index; self.seconds = seconds }
    }

    @Model
    final class Tag {
        @Attribute(.unique, .spotlight) var label: String
        var activities: [Activity] = []
        init(_ label: String) { self.label = label }
    }

    @Model
    final class PersonalRecord {
        @Attribute(.unique) var exercise: String
        var load: Load
        @Attribute(.codable) var history: [Date: Double]
        var athlete: Athlete?
        init(exercise: String, load: Load, history: [Date: Double] = [:]) {
            self.exercise = exercise
            self.load = load
            self.history = history
        }
    }
}

typealias Athlete = FitSchemaV2.Athlete
typealias Activity = FitSchemaV2.Activity
typealias Run = FitSchemaV2.Run
typealias Strength = FitSchemaV2.Strength
typealias Exercise = FitSchemaV2.Exercise
typealias ExerciseSet = FitSchemaV2.ExerciseSet
typealias Gear = FitSchemaV2.Gear
