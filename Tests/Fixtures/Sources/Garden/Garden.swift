// swift-format-ignore-file
import Foundation
import Instar

// Each version lists its root model only, a plant is the same in both, and nobody wrote a stage.

enum GardenSchemaV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Garden.self] }

    @Model
    final class Garden {
        var name: String
        @Relationship(deleteRule: .cascade, inverse: \Bed.garden) var beds: [Bed] = []

        init(name: String) {
            self.name = name
        }
    }

    @Model
    final class Bed {
        var label: String
        var garden: Garden?
        @Relationship(deleteRule: .cascade, inverse: \Plant.bed) var plants: [Plant] = []

        init(label: String) {
            self.label = label
        }
    }

    @Model
    final class Plant {
        var name: String
        var bed: Bed?

        init(name: String) {
            self.name = name
        }
    }
}

enum GardenSchemaV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Garden.self] }

    typealias Plant = GardenSchemaV1.Plant

    @Model
    final class Garden {
        var name: String
        var city: String = "unknown"
        @Relationship(deleteRule: .cascade, inverse: \Bed.garden) var beds: [Bed] = []

        init(name: String) {
            self.name = name
        }
    }

    @Model
    final class Bed {
        @Attribute(originalName: "label") var title: String
        var garden: Garden?
        @Relationship(deleteRule: .cascade, inverse: \Plant.bed) var plants: [Plant] = []

        init(title: String) {
            self.title = title
        }
    }
}

enum GardenMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [GardenSchemaV1.self, GardenSchemaV2.self] }
    static var stages: [MigrationStage] { [] }
}

typealias Garden = GardenSchemaV2.Garden
typealias Bed = GardenSchemaV2.Bed
typealias Plant = GardenSchemaV2.Plant
