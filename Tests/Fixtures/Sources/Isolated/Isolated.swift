// swift-format-ignore-file
//
//  Isolated.swift
//  Isolated: built with the main actor as the default isolation
//

import Foundation
import Instar

enum PantrySchemaV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Jar.self, Shelf.self] }
}

extension PantrySchemaV1 {
    nonisolated enum Size: String, Codable { case small, large }

    nonisolated struct Maker: Codable, Equatable {
        var name: String
        var city: String?
    }

    @Model
    nonisolated final class Jar {
        #Unique<Jar>([\.uid])

        var uid: UUID = UUID()
        var content: String
        var size: Size = Size.small
        var maker: Maker?
        @Transient var isOpen = false
        var shelf: Shelf?

        init(content: String) { self.content = content }

        var title: String { "\(content) (\(size.rawValue))" }
    }

    @Model
    nonisolated class Shelf {
        var name: String
        @Relationship(deleteRule: .cascade, inverse: \Jar.shelf) var jars: [Jar] = []

        init(name: String) { self.name = name }
    }
}

enum PantrySchemaV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Jar.self] }

    @Model
    nonisolated final class Jar {
        var content: String
        var label: String = ""

        init(content: String) { self.content = content }
    }
}

enum PantryPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [PantrySchemaV1.self, PantrySchemaV2.self] }

    static var stages: [MigrationStage] { [addLabel] }

    static let addLabel = MigrationStage.custom(
        fromVersion: PantrySchemaV1.self, toVersion: PantrySchemaV2.self,
        willMigrate: { context in
            for jar in try context.fetch(FetchDescriptor<PantrySchemaV1.Jar>()) {
                jar.content = jar.title
            }
        },
        didMigrate: { context in
            for jar in try context.fetch(FetchDescriptor<PantrySchemaV2.Jar>()) {
                jar.label = jar.content.uppercased()
            }
        })
}
