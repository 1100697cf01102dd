// swift-format-ignore-file
import Instar

try makeStore(RecipeSchemaV1.self) { context in
    context.insert(RecipeSchemaV1.Recipe(title: "Stew", servings: 2, text: "Cook."))
    context.insert(RecipeSchemaV1.Recipe(title: "", servings: 1, text: ""))
}

let container = try makeContainer(RecipeSchemaV2.self)
let context = ModelContext(container)
let soup = Recipe(title: "Soup", steps: ["Chop", "Boil"])
soup.nutrition = Recipe.Nutrition(calories: 180, protein: nil)
soup.ingredients = [Ingredient("Leek", 2), Ingredient("Potato", 4)]
soup.tags = [RecipeTag(name: "winter")]
context.insert(soup)
context.insert(Recipe(copying: soup))
try context.save()

let other = ModelContext(container)
let recipes = try other.fetch(FetchDescriptor<Recipe>()).sorted()
check(recipes.map(\.description) == ["Soup for 4", "Soup (copy) for 4"])
check(recipes[0].ingredients.count == 2 && recipes[1].ingredients.isEmpty)
check(recipes[0].nutrition?.calories == 180 && recipes[0].isQuick)
check(recipes[0].tags?.first?.recipes?.first === recipes[0])
check(recipes[0].id == soup.id)
let easy = Recipe.Difficulty.easy
let id = soup.id
check(try other.fetchCount(FetchDescriptor<Recipe>(predicate: #Predicate { $0.id == id })) == 1)
check(recipes[0].scaled(to: 8) == 2 && recipes[0].difficulty == easy)
