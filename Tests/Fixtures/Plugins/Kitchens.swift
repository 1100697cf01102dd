import Instar

// Models as the teams of some apps would have written them, of whose stores the tests have twins: see
// `Tests/InstarTestSupport/Twins`.

// MARK: MetaCocktails (SwiftData)

enum CocktailsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Cocktail.self, Garnish.self, Ingredient.self, IngredientBase.self]
  }

  struct Author: Codable, Hashable {
    var id: UUID
    var person: String
    var place: String?
    var year: Int?
  }

  struct Tags: Codable, Hashable {
    var profiles: [String]?
    var styles: [String]?
  }

  enum Collection: String, Codable { case classic, wnd }

  enum Glass: String, Codable { case coupe, rocks }

  enum Unit: String, Codable { case dash, fluidOunces }

  enum Category: String, Codable { case rums, syrups }

  struct Instruction: Codable, Hashable {
    var step: Int
    var method: String
  }

  struct Prep: Codable, Hashable {
    var id: UUID
    var prepIngredientName: String
    var prepRecipe: [Instruction]
  }

  @Model
  final class Cocktail {
    var id: UUID
    var cocktailName: String
    var author: Author?
    var cocktailTags: Tags
    var collection: Collection?
    var dateAdded: Date
    var glasswareType: Glass
    var isCustomCocktail: Bool
    var notes: String?
    @Relationship(inverse: \Garnish.cocktails) var garnish: [Garnish]
    @Relationship(deleteRule: .cascade) var spec: [Ingredient]

    init(_ name: String, _ tags: Tags, _ glass: Glass) {
      id = UUID()
      cocktailName = name
      cocktailTags = tags
      dateAdded = .now
      glasswareType = glass
      isCustomCocktail = true
      garnish = []
      spec = []
    }
  }

  @Model
  final class Garnish {
    @Attribute(.unique) var name: String
    var cocktails: [Cocktail]

    init(name: String) {
      self.name = name
      cocktails = []
    }
  }

  @Model
  final class Ingredient {
    var id: UUID
    var info: String?
    var unit: Unit
    var value: Double
    var ingredientBase: IngredientBase?

    init(value: Double) {
      id = UUID()
      unit = .dash
      self.value = value
    }
  }

  @Model
  final class IngredientBase {
    var id: UUID
    @Attribute(.unique) var name: String
    var category: Category
    var isCustom: Bool
    var prep: Prep?
    @Relationship(inverse: \Ingredient.ingredientBase) var ingredients: [Ingredient]

    init(_ name: String, _ category: Category) {
      id = UUID()
      self.name = name
      self.category = category
      isCustom = true
      ingredients = []
    }
  }
}

enum CocktailsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Bar.self, Cocktail.self, Decoration.self, Ingredient.self, IngredientBase.self]
  }

  typealias V1 = CocktailsV1

  /// First by name: all other entities get new numbers.
  @Model
  final class Bar {
    var name: String

    init(name: String) { self.name = name }
  }

  @Model
  final class Cocktail {
    var id: UUID
    @Attribute(originalName: "cocktailName") var name: String
    @Attribute(originalName: "author") var inventor: V1.Author?
    var cocktailTags: V1.Tags
    var collection: V1.Collection?
    var dateAdded: Date
    @Attribute(originalName: "glasswareType") var glass: V1.Glass
    var summary: String = ""
    @Relationship(inverse: \Decoration.cocktails) var garnish: [Decoration]
    @Relationship(deleteRule: .cascade) var spec: [Ingredient]

    init(_ name: String, _ tags: V1.Tags, _ glass: V1.Glass) {
      id = UUID()
      self.name = name
      cocktailTags = tags
      dateAdded = .now
      self.glass = glass
      garnish = []
      spec = []
    }
  }

  @Model(originalName: "Garnish")
  final class Decoration {
    @Attribute(.unique) var name: String
    var cocktails: [Cocktail]

    init(name: String) {
      self.name = name
      cocktails = []
    }
  }

  @Model
  final class Ingredient {
    var id: UUID
    var info: String?
    var unit: V1.Unit
    var value: Double
    var ingredientBase: IngredientBase?

    init(value: Double) {
      id = UUID()
      unit = .dash
      self.value = value
    }
  }

  @Model
  final class IngredientBase {
    var id: UUID
    @Attribute(.unique) var name: String
    var category: V1.Category
    var prep: V1.Prep?
    @Relationship(inverse: \Ingredient.ingredientBase) var ingredients: [Ingredient]

    init(_ name: String, _ category: V1.Category) {
      id = UUID()
      self.name = name
      self.category = category
      ingredients = []
    }
  }
}

enum CocktailsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [CocktailsV1.self, CocktailsV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: CocktailsV1.self, toVersion: CocktailsV2.self, willMigrate: nil,
        didMigrate: { context in
          for cocktail in try context.fetch(FetchDescriptor<CocktailsV2.Cocktail>()) {
            let garnish = cocktail.garnish.map(\.name).sorted().joined(separator: "+")
            let spec = cocktail.spec.sorted { $0.value < $1.value }.map {
              "\($0.value) \($0.unit.rawValue) \($0.ingredientBase?.name ?? "-")"
            }
            let recipe = cocktail.spec.compactMap { $0.ingredientBase?.prep?.prepRecipe.count }
            cocktail.summary =
              "\(cocktail.inventor?.person ?? "-") \(cocktail.inventor?.year ?? 0)"
              + "|\(cocktail.cocktailTags.profiles?.joined(separator: "+") ?? "-")"
              + "|\(cocktail.collection?.rawValue ?? "-") \(cocktail.glass.rawValue)|\(garnish)"
              + "|\(spec.joined(separator: "+"))|\(recipe.reduce(0, +))"
          }
        })
    ]
  }
}

// MARK: ChefTime (SwiftData)

enum RecipesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [SDFolder.self, SDIngredient.self, SDRecipe.self]
  }

  enum FolderType: Codable { case systemAll, systemStandard, systemRecentlyDeleted, user }

  @Model
  final class SDFolder {
    @Attribute(.unique) var id: UUID
    var name: String
    var imageData: Data?
    var folderType: FolderType
    var parentFolder: SDFolder?
    @Relationship(deleteRule: .cascade, inverse: \SDFolder.parentFolder) var folders: [SDFolder]
    @Relationship(deleteRule: .cascade, inverse: \SDRecipe.parentFolder) var recipes: [SDRecipe]

    init(_ name: String) {
      id = UUID()
      self.name = name
      folderType = .user
      folders = []
      recipes = []
    }
  }

  @Model
  final class SDRecipe {
    #Index<SDRecipe>([\.creationDate, \.name])
    var id: UUID
    var creationDate: Date
    var name: String
    var imagesData: [Data]
    var parentFolder: SDFolder?
    @Relationship(deleteRule: .cascade, inverse: \SDIngredient.recipe)
    var ingredients: [SDIngredient]

    init(_ name: String) {
      id = UUID()
      creationDate = .now
      self.name = name
      imagesData = []
      ingredients = []
    }
  }

  @Model
  final class SDIngredient {
    var text: String
    var amount: Double
    var isComplete: Bool
    var positionPriority: Int
    var recipe: SDRecipe?

    init(_ text: String, _ amount: Double) {
      self.text = text
      self.amount = amount
      isComplete = false
      positionPriority = 0
    }
  }
}

enum RecipesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Chef.self, SDFolder.self, SDIngredient.self, SDRecipe.self]
  }

  @Model
  final class Chef {
    var name: String

    init(name: String) { self.name = name }
  }

  @Model
  final class SDFolder {
    @Attribute(.unique) var id: UUID
    var name: String
    var imageData: Data?
    var folderType: RecipesV1.FolderType
    var parentFolder: SDFolder?
    @Relationship(deleteRule: .cascade, inverse: \SDFolder.parentFolder) var folders: [SDFolder]
    @Relationship(deleteRule: .cascade, inverse: \SDRecipe.parentFolder) var recipes: [SDRecipe]

    init(_ name: String) {
      id = UUID()
      self.name = name
      folderType = .user
      folders = []
      recipes = []
    }
  }

  @Model
  final class SDRecipe {
    #Index<SDRecipe>([\.creationDate, \.name])
    var id: UUID
    var creationDate: Date
    var name: String
    var imagesData: [Data]
    var tags: [String] = []
    var parentFolder: SDFolder?
    var chef: Chef?
    @Relationship(deleteRule: .cascade, inverse: \SDIngredient.recipe)
    var ingredients: [SDIngredient]

    init(_ name: String) {
      id = UUID()
      creationDate = .now
      self.name = name
      imagesData = []
      ingredients = []
    }
  }

  @Model
  final class SDIngredient {
    var text: String
    var amount: Double
    var isComplete: Bool
    @Attribute(originalName: "positionPriority") var position: Int
    var recipe: SDRecipe?

    init(_ text: String, _ amount: Double) {
      self.text = text
      self.amount = amount
      isComplete = false
      position = 0
    }
  }
}

enum RecipesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [RecipesV1.self, RecipesV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: RecipesV1.self, toVersion: RecipesV2.self, willMigrate: nil,
        didMigrate: { context in
          let chef = RecipesV2.Chef(name: "Ann")
          context.insert(chef)
          for recipe in try context.fetch(FetchDescriptor<RecipesV2.SDRecipe>()) {
            recipe.tags = [
              recipe.parentFolder?.folderType == .user ? "user" : "system",
              "\(recipe.imagesData.count)",
            ]
            recipe.imagesData.append(Data([1, 2, 3]))
          }
          try context.save()
          let tagged = FetchDescriptor<RecipesV2.SDRecipe>(
            predicate: #Predicate { $0.tags.contains("user") && $0.tags.count == 2 })
          for recipe in try context.fetch(tagged) { recipe.chef = chef }
        })
    ]
  }
}

// MARK: Kik (Core Data, before there were archived models)

enum ChatsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [KikChat.self, KikMessage.self, KikUser.self]
  }

  @Model
  final class KikChat {
    var flags: Int32?
    var dateUpdated: Date?
    @Relationship(inverse: \KikUser.chatUser) var user: KikUser?

    init() {}
  }

  @Model
  final class KikMessage {
    var type: Int32?
    var receivedTimestamp: Date?
    var body: String?
    var user: KikUser?

    init() {}
  }

  @Model
  final class KikUser {
    #Index<KikUser>([\.jid])
    var displayName: String?
    var flags: Int32?
    var jid: String?
    var ppURL: String?
    var chatUser: KikChat?
    @Relationship(inverse: \KikUser.membersInverse) var members: [KikUser]
    var membersInverse: [KikUser]
    @Relationship(inverse: \KikUser.bansInverse) var bans: [KikUser]
    var bansInverse: [KikUser]

    init() {
      members = []
      membersInverse = []
      bans = []
      bansInverse = []
    }
  }
}

enum ChatsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Device.self, KikChat.self, KikMessage.self, KikUser.self]
  }

  @Model
  final class Device {
    var name: String?

    init() {}
  }

  @Model
  final class KikChat {
    var flags: Int32?
    var dateUpdated: Date?
    @Relationship(inverse: \KikUser.chatUser) var user: KikUser?

    init() {}
  }

  @Model
  final class KikMessage {
    var type: Int32?
    var receivedTimestamp: Date?
    @Attribute(originalName: "body") var text: String?
    var user: KikUser?

    init() {}
  }

  @Model
  final class KikUser {
    #Index<KikUser>([\.jid])
    var displayName: String?
    var flags: Int32?
    var jid: String?
    var about: String?
    var chatUser: KikChat?
    @Relationship(inverse: \KikUser.membersInverse) var members: [KikUser]
    var membersInverse: [KikUser]
    @Relationship(inverse: \KikUser.bansInverse) var bans: [KikUser]
    var bansInverse: [KikUser]

    init() {
      members = []
      membersInverse = []
      bans = []
      bansInverse = []
    }
  }
}

enum ChatsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ChatsV1.self, ChatsV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: ChatsV1.self, toVersion: ChatsV2.self, willMigrate: nil,
        didMigrate: { context in
          for user in try context.fetch(FetchDescriptor<ChatsV2.KikUser>()) {
            func names(_ users: [ChatsV2.KikUser]) -> String {
              users.compactMap(\.displayName).sorted().joined(separator: "+")
            }
            user.about =
              "\(names(user.members))|\(names(user.membersInverse))"
              + "|\(names(user.bans))|\(names(user.bansInverse))"
          }
        })
    ]
  }
}

// MARK: Photos (Core Data)

enum AlbumsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Asset.self, GenericAlbum.self, Album.self, Folder.self, Keyword.self]
  }

  @Model
  final class Asset {
    var duration: Double?
    var favorite: Int16?
    var filename: String?
    var albums: [Album] = []
    @Relationship(inverse: \GenericAlbum.keyAsset) var albumsBeingKey: [GenericAlbum] = []
    @Relationship(inverse: \Keyword.assetAttributes) var keywords: [Keyword] = []

    init() {}
  }

  @Model
  class GenericAlbum {
    var title: String?
    var keyAsset: Asset?
    var parentFolder: Folder?

    init() {}
  }

  @Model
  final class Album: GenericAlbum {
    @Relationship(.ordered, inverse: \Asset.albums) var assets: [Asset] = []

    override init() { super.init() }
  }

  @Model
  final class Folder: GenericAlbum {
    @Relationship(.ordered, deleteRule: .cascade, inverse: \GenericAlbum.parentFolder)
    var childCollections: [GenericAlbum] = []

    override init() { super.init() }
  }

  @Model
  final class Keyword {
    var title: String?
    var assetAttributes: [Asset] = []

    init() {}
  }
}

enum AlbumsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Adjustment.self, Asset.self, GenericAlbum.self, Album.self, Folder.self, Keyword.self]
  }

  @Model
  final class Adjustment {
    var data: Data?

    init() {}
  }

  @Model
  final class Asset {
    var duration: Double?
    var favorite: Int16?
    @Attribute(originalName: "filename") var file: String?
    var albums: [Album] = []
    @Relationship(inverse: \GenericAlbum.keyAsset) var albumsBeingKey: [GenericAlbum] = []
    @Relationship(inverse: \Keyword.assetAttributes) var keywords: [Keyword] = []

    init() {}
  }

  @Model
  class GenericAlbum {
    var title: String?
    var contents: String?
    var keyAsset: Asset?
    var parentFolder: Folder?

    init() {}
  }

  @Model
  final class Album: GenericAlbum {
    @Relationship(.ordered, inverse: \Asset.albums) var assets: [Asset] = []

    override init() { super.init() }
  }

  @Model
  final class Folder: GenericAlbum {
    @Relationship(.ordered, deleteRule: .cascade, inverse: \GenericAlbum.parentFolder)
    var childCollections: [GenericAlbum] = []

    override init() { super.init() }
  }

  @Model
  final class Keyword {
    var title: String?
    var assetAttributes: [Asset] = []

    init() {}
  }
}

enum AlbumsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AlbumsV1.self, AlbumsV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: AlbumsV1.self, toVersion: AlbumsV2.self, willMigrate: nil,
        didMigrate: { context in
          for album in try context.fetch(FetchDescriptor<AlbumsV2.Album>()) {
            album.contents = album.assets.compactMap(\.file).joined(separator: "+")
          }
          for folder in try context.fetch(FetchDescriptor<AlbumsV2.Folder>()) {
            folder.contents = folder.childCollections.compactMap(\.title).joined(separator: "+")
          }
        })
    ]
  }
}

#InstarPlugin(CocktailsPlan.self, RecipesPlan.self, ChatsPlan.self, AlbumsPlan.self)
