// swift-format-ignore-file
import Foundation
import Instar

// The current models stand at file scope, as they did before there were versions; old ones are kept in their schema.

@Model
final class Recipe: Identifiable, Comparable, CustomStringConvertible {
    @Attribute(.unique) var id: UUID
    var title: String
    var servings: Int
    var steps: [String]
    var difficulty: Difficulty = Difficulty.easy
    var nutrition: Nutrition?
    @Relationship(deleteRule: .cascade) var ingredients: [Ingredient] = []
    @Relationship var tags: [RecipeTag]?
    @Transient var isExpanded = false

    enum Difficulty: Int, Codable, CaseIterable {
        case easy = 1, medium, hard
    }

    struct Nutrition: Codable, Hashable {
        var calories: Int
        var protein: Double?
    }

    static let placeholder = "Untitled recipe"
    static func < (lhs: Recipe, rhs: Recipe) -> Bool { lhs.title < rhs.title }

    init(id: UUID = UUID(), title: String = Recipe.placeholder, servings: Int = 4, steps: [String] = []) {
        self.id = id
        self.title = title
        self.servings = servings
        self.steps = steps
    }

    convenience init(copying other: Recipe) {
        self.init(title: "\(other.title) (copy)", servings: other.servings, steps: other.steps)
        difficulty = other.difficulty
        nutrition = other.nutrition
    }

    var description: String { "\(title) for \(servings)" }
    var isQuick: Bool { steps.count < 4 && difficulty == .easy }

    func scaled(to servings: Int) -> Double {
        Double(servings) / Double(self.servings)
    }
}

@Model
final class Ingredient {
    var name: String = ""
    var amount: Double = 0
    var recipe: Recipe?

    init(_ name: String, _ amount: Double) {
        self.name = name
        self.amount = amount
    }
}

@Model
final class RecipeTag {
    @Attribute(.unique) var name: String
    @Relationship(inverse: \Recipe.tags) var recipes: [Recipe]?

    init(name: String) { self.name = name }
}

enum RecipeSchemaV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [RecipeSchemaV1.Recipe.self] }

    @Model
    final class Recipe {
        @Attribute(.unique) var id: UUID
        var title: String
        var servings: Int
        var text: String

        init(title: String, servings: Int, text: String) {
            id = UUID()
            self.title = title
            self.servings = servings
            self.text = text
        }
    }
}

enum RecipeSchemaV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Recipe.self, Ingredient.self, RecipeTag.self] }

    typealias Recipe = _Recipe
    typealias _Recipe = CurrentRecipe
}

typealias CurrentRecipe = Recipe

class RecipeMigrationPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [RecipeSchemaV1.self, RecipeSchemaV2.self] }

    static var stages: [MigrationStage] { [v1ToV2] }

    static let v1ToV2 = MigrationStage.custom(
        fromVersion: RecipeSchemaV1.self, toVersion: RecipeSchemaV2.self
    ) { context in
        let recipes = try context.fetch(FetchDescriptor<RecipeSchemaV1.Recipe>())
        for recipe in recipes where recipe.title.isEmpty {
            context.delete(recipe)
        }
    } didMigrate: { context in
        for recipe in try context.fetch(FetchDescriptor<Recipe>()) {
            recipe.steps = ["Read the old card."]
        }
        try context.save()
    }
}
