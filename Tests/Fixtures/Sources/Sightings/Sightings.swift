// swift-format-ignore-file
import Foundation
import Instar

enum SightingsSchemaV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Bird.self, Sighting.self] }

    @Model
    final class Bird {
        @Attribute(.unique, .preserveValueOnDeletion) var name: String
        @Relationship(deleteRule: .cascade, inverse: \Sighting.bird) var sightings: [Sighting] = []

        init(name: String) {
            self.name = name
        }
    }

    @Model
    final class Sighting {
        var count: Int
        var place: String
        var bird: Bird?

        init(count: Int, place: String) {
            self.count = count
            self.place = place
        }
    }
}

enum SightingsSchemaV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Bird.self, Sighting.self] }

    @Model
    final class Bird {
        @Attribute(.preserveValueOnDeletion) var code: String = ""
        @Attribute(.unique, .preserveValueOnDeletion) var name: String
        @Relationship(deleteRule: .cascade, inverse: \Sighting.bird) var sightings: [Sighting] = []

        init(name: String) {
            self.name = name
        }
    }

    @Model
    final class Sighting {
        var count: Int
        var place: String
        var bird: Bird?

        init(count: Int, place: String) {
            self.count = count
            self.place = place
        }
    }
}

enum SightingsMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [SightingsSchemaV1.self, SightingsSchemaV2.self] }
    static var stages: [MigrationStage] { [addCodes] }

    static let addCodes = MigrationStage.custom(
        fromVersion: SightingsSchemaV1.self, toVersion: SightingsSchemaV2.self, willMigrate: nil,
        didMigrate: { context in
            context.author = "migration"
            for bird in try context.fetch(FetchDescriptor<SightingsSchemaV2.Bird>()) {
                bird.code = bird.name.prefix(3).uppercased()
            }
            try context.save()
        })
}

typealias Bird = SightingsSchemaV2.Bird
typealias Sighting = SightingsSchemaV2.Sighting

/// What a widget shows: it follows the changes of the app.
struct ChangeTracker {
    let container: ModelContainer
    private(set) var tokenData: Data?

    init(container: ModelContainer) {
        self.container = container
    }

    func findTransactions(after token: DefaultHistoryToken?, author: String) -> [DefaultHistoryTransaction] {
        var historyDescriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        if let token {
            historyDescriptor.predicate = #Predicate { transaction in
                (transaction.token > token) && (transaction.author == author)
            }
        }
        var transactions: [DefaultHistoryTransaction] = []
        let taskContext = ModelContext(container)
        do {
            transactions = try taskContext.fetchHistory(historyDescriptor)
        } catch let error {
            print(error)
        }
        return transactions
    }

    func findBirds(in transactions: [DefaultHistoryTransaction]) -> (Set<Bird>, DefaultHistoryToken?) {
        let taskContext = ModelContext(container)
        var resultBirds: Set<Bird> = []
        for transaction in transactions {
            for change in transaction.changes {
                let modelID = change.changedPersistentIdentifier
                let fetchDescriptor = FetchDescriptor<Bird>(predicate: #Predicate { bird in
                    bird.persistentModelID == modelID
                })
                let fetchResults = try? taskContext.fetch(fetchDescriptor)
                guard let matchedBird = fetchResults?.first else {
                    continue
                }
                switch change {
                case .insert(_ as DefaultHistoryInsert<Bird>):
                    resultBirds.insert(matchedBird)
                case .update(_ as DefaultHistoryUpdate<Bird>):
                    resultBirds.update(with: matchedBird)
                case .delete(_ as DefaultHistoryDelete<Bird>):
                    resultBirds.remove(matchedBird)
                default: break
                }
            }
        }
        return (resultBirds, transactions.last?.token)
    }

    mutating func remember(_ token: DefaultHistoryToken) {
        tokenData = try? JSONEncoder().encode(token)
    }

    var token: DefaultHistoryToken? {
        tokenData.flatMap { try? JSONDecoder().decode(DefaultHistoryToken.self, from: $0) }
    }

    func deleteTransactions(before token: DefaultHistoryToken) throws {
        var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
        descriptor.predicate = #Predicate {
            $0.token < token
        }
        let context = ModelContext(container)
        try context.deleteHistory(descriptor)
    }
}
