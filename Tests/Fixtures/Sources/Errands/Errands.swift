// swift-format-ignore-file
import Foundation
import Instar

// Arrays on both sides, at first without an inverse. The stages try to keep the marks of the errands.

enum ErrandsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [ErrandsV1.Errand.self, ErrandsV1.Mark.self] }

    @Model final class Errand {
        var createdAt: Date = Date.now
        var title: String = ""
        var marks: [ErrandsV1.Mark] = []
        @Relationship(deleteRule: .cascade) var steps: [ErrandsV1.Errand] = []
        var parent: ErrandsV1.Errand?

        init() {}
    }

    @Model final class Mark {
        var name: String = ""
        init() {}
    }
}

enum ErrandsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [ErrandsV2.Errand.self, ErrandsV2.Mark.self] }

    @Model final class Errand {
        var createdAt: Date = Date.now
        var title: String = ""
        var marks: [ErrandsV2.Mark] = []
        @Relationship(deleteRule: .cascade) var steps: [ErrandsV2.Errand] = []
        var parent: ErrandsV2.Errand?

        init() {}
    }

    @Model final class Mark {
        var name: String = ""
        var errands: [ErrandsV2.Errand] = []
        init() {}
    }
}

enum ErrandsV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Errand.self, Mark.self] }
}

@Model
final class Errand {
    var createdAt: Date
    var title: String
    @Relationship(inverse: \Mark.errands) var marks: [Mark]
    @Relationship(deleteRule: .cascade)
    var steps: [Errand] = []
    var parent: Errand?

    init(title: String) {
        self.title = title
        self.createdAt = Date()
        self.marks = []
    }
}

@Model
final class Mark: Identifiable {
    var name: String
    var errands: [Errand] = []

    init(name: String) {
        self.name = name
    }
}

enum ErrandsPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
        [ErrandsV1.self, ErrandsV2.self, ErrandsV3.self]
    }
    static var stages: [MigrationStage] { [v1ToV2, v2ToV3] }

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: ErrandsV1.self,
        toVersion: ErrandsV2.self,
        willMigrate: { context in
            var marks: [String: [String]] = [:]
            for errand in try context.fetch(FetchDescriptor<ErrandsV1.Errand>()) where !errand.marks.isEmpty {
                marks[errand.title, default: []].append(contentsOf: errand.marks.map(\.name))
            }
            UserDefaults.standard.set(marks, forKey: "errands_v1v2")
        },
        didMigrate: { context in
            guard let marks = UserDefaults.standard.dictionary(forKey: "errands_v1v2") as? [String: [String]] else { return }
            let all = try context.fetch(FetchDescriptor<ErrandsV2.Mark>())
            for errand in try context.fetch(FetchDescriptor<ErrandsV2.Errand>()) {
                // The app of this version shows a mark's errands, so both arrays are filled.
                for mark in all where marks[errand.title]?.contains(mark.name) == true {
                    if !errand.marks.contains(where: { $0.persistentModelID == mark.persistentModelID }) {
                        errand.marks.append(mark)
                    }
                    mark.errands.append(errand)
                }
            }
            try context.save()
            UserDefaults.standard.removeObject(forKey: "errands_v1v2")
        }
    )

    static let v2ToV3 = MigrationStage.custom(
        fromVersion: ErrandsV2.self,
        toVersion: ErrandsV3.self,
        willMigrate: nil,
        didMigrate: { context in
            let marks = try context.fetch(FetchDescriptor<Mark>())
            for errand in try context.fetch(FetchDescriptor<Errand>()) where errand.marks.isEmpty {
                guard let mark = marks.first(where: { $0.name == "none" }) else { continue }
                errand.marks.append(mark)
            }
            try context.save()
        }
    )
}
