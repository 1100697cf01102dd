extension AppleStore {
  /// A bar's recipes: composites whose fields collide with attributes, enums of both kinds, JSON inside composites, a
  /// to-many relationship without inverse, many-to-many.
  public static let cocktails = AppleStore(
    name: "MetaCocktails",
    statements: [
      "CREATE TABLE ZCOCKTAIL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZYEAR INTEGER, ZISCUSTOMCOCKTAIL INTEGER, ZDATEADDED TIMESTAMP, ZPERSON VARCHAR, ZPLACE VARCHAR, ZCOCKTAILNAME VARCHAR, ZCOLLECTION VARCHAR, ZGLASSWARETYPE VARCHAR, ZNOTES VARCHAR, ZID BLOB, ZID1 BLOB, ZPROFILES BLOB, ZSTYLES BLOB )",
      "CREATE TABLE Z_1GARNISH ( Z_1COCKTAILS INTEGER, Z_2GARNISH INTEGER, PRIMARY KEY (Z_1COCKTAILS, Z_2GARNISH) )",
      "CREATE TABLE ZGARNISH ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE TABLE ZINGREDIENT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZINGREDIENTBASE INTEGER, Z1SPEC INTEGER, ZVALUE FLOAT, ZINFO VARCHAR, ZUNIT VARCHAR, ZID BLOB )",
      "CREATE TABLE ZINGREDIENTBASE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZISCUSTOM INTEGER, ZCATEGORY VARCHAR, ZNAME VARCHAR, ZPREPINGREDIENTNAME VARCHAR, ZID BLOB, ZID1 BLOB, ZPREPRECIPE BLOB )",
      "CREATE INDEX Z_1GARNISH_Z_2GARNISH_INDEX ON Z_1GARNISH (Z_2GARNISH, Z_1COCKTAILS)",
      "CREATE UNIQUE INDEX Z_Garnish_UNIQUE_name ON ZGARNISH (ZNAME COLLATE BINARY ASC)",
      "CREATE INDEX ZINGREDIENT_ZINGREDIENTBASE_INDEX ON ZINGREDIENT (ZINGREDIENTBASE)",
      "CREATE INDEX ZINGREDIENT_Z1SPEC_INDEX ON ZINGREDIENT (Z1SPEC)",
      "CREATE UNIQUE INDEX Z_IngredientBase_UNIQUE_name ON ZINGREDIENTBASE (ZNAME COLLATE BINARY ASC)",
    ],
    entities: [
      ("Cocktail", 0, 416), ("Garnish", 0, 9), ("Ingredient", 0, 1840), ("IngredientBase", 0, 12),
    ],
    rows: [
      """
      INSERT INTO ZCOCKTAIL VALUES
        (1, 1, 1, 1934, 0, 752000000.5, 'Ernest', 'Havana', 'Daiquiri', 'classic', 'coupe', NULL,
          x'00112233445566778899AABBCCDDEEFF', x'0102030405060708090A0B0C0D0E0F10',
          CAST('["Sour","Refreshing"]' AS BLOB), CAST('["Shaken"]' AS BLOB)),
        (2, 1, 3, NULL, 1, 752000001, NULL, NULL, 'House', NULL, 'rocks', 'ours',
          NULL, x'1112131415161718191A1B1C1D1E1F20', CAST('["Stirred","Martini Variation"]' AS BLOB), NULL),
        (416, 1, 2, 1888, 0, 752000002, 'Jerry', 'New York', 'Martinez', 'wnd', 'coupe', NULL,
          x'2122232425262728292A2B2C2D2E2F30', x'3132333435363738393A3B3C3D3E3F40', CAST('[]' AS BLOB), CAST('[]' AS BLOB))
      """,
      "INSERT INTO ZGARNISH VALUES (1, 2, 2, 'Lime Wheel'), (2, 2, 1, 'Lemon Twist'), (7, 2, 1, 'Cherry')",
      "INSERT INTO Z_1GARNISH VALUES (1, 1), (416, 2), (416, 7), (2, 1)",
      """
      INSERT INTO ZINGREDIENTBASE VALUES
        (1, 4, 1, 0, 'rums', 'White Rum', NULL, x'41', NULL, NULL),
        (3, 4, 5, 1, 'syrups', 'Simple Syrup', 'Simple', x'4142434445464748494A4B4C4D4E4F50',
          x'5152535455565758595A5B5C5D5E5F60',
          CAST('[{"step":1,"method":"Stir"},{"method":"Cool","step":2}]' AS BLOB))
      """,
      """
      INSERT INTO ZINGREDIENT VALUES
        (10, 3, 1, 1, 1, 2, NULL, 'fluidOunces', x'6162636465666768696A6B6C6D6E6F70'),
        (11, 3, 1, 3, 1, 0.75, 'rich', 'fluidOunces', x'7172737475767778797A7B7C7D7E7F80'),
        (1840, 3, 4, 1, 416, 3.0, NULL, 'dash', x'8182838485868788898A8B8C8D8E8F90'),
        (1841, 3, 1, NULL, NULL, 1, NULL, 'dash', x'9192939495969798999A9B9C9D9E9FA0')
      """,
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "Cocktail",
          properties: [
            .composite(
              "author",
              [("id", .uuid), ("person", .string), ("place", .string), ("year", .int64)],
              isOptional: true),
            .required("cocktailName", .string),
            .composite("cocktailTags", [("profiles", .binary), ("styles", .binary)]),
            .enumeration("collection", isOptional: true),
            .required("dateAdded", .date),
            .enumeration("glasswareType"),
            .required("id", .uuid), .required("isCustomCocktail", .boolean),
            .attribute("notes", .string),
            .toMany("garnish", "Garnish", inverse: "cocktails"),
            .toMany("spec", "Ingredient", deleteRule: 2),
          ]),
        .init(
          name: "Garnish",
          properties: [
            .required("name", .string), .toMany("cocktails", "Cocktail", inverse: "garnish"),
          ], unique: [["name"]]),
        .init(
          name: "Ingredient",
          properties: [
            .required("id", .uuid), .attribute("info", .string), .enumeration("unit"),
            .required("value", .double),
            .toOne("ingredientBase", "IngredientBase", inverse: "ingredients"),
          ]),
        .init(
          name: "IngredientBase",
          properties: [
            .enumeration("category"), .required("id", .uuid), .required("isCustom", .boolean),
            .required("name", .string),
            .composite(
              "prep",
              [("id", .uuid), ("prepIngredientName", .string), ("prepRecipe", .binary)],
              isOptional: true),
            .toMany("ingredients", "Ingredient", inverse: "ingredientBase"),
          ], unique: [["name"]]),
      ], identifiers: ["1.0.0"],
      configurations: ["default": ["Cocktail", "Garnish", "Ingredient", "IngredientBase"]]),
    frameworkVersion: 1414, identifiers: ["1.0.0"], history: .current)

  /// Recipes in folders: an enum without raw value in a column for each case, an array of `Data` as a keyed archive,
  /// folders in folders, keys above all rows.
  public static let recipes = AppleStore(
    name: "ChefTime",
    statements: [
      "CREATE TABLE ZSDFOLDER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPARENTFOLDER INTEGER, ZSYSTEMALL VARCHAR, ZSYSTEMSTANDARD VARCHAR, ZSYSTEMRECENTLYDELETED VARCHAR, ZUSER VARCHAR, ZNAME VARCHAR, ZID BLOB, ZIMAGEDATA BLOB )",
      "CREATE TABLE ZSDINGREDIENT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZISCOMPLETE INTEGER, ZPOSITIONPRIORITY INTEGER, ZRECIPE INTEGER, ZAMOUNT FLOAT, ZTEXT VARCHAR )",
      "CREATE TABLE ZSDRECIPE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPARENTFOLDER INTEGER, ZCREATIONDATE TIMESTAMP, ZNAME VARCHAR, ZID BLOB, ZIMAGESDATA BLOB )",
      "CREATE INDEX ZSDFOLDER_ZPARENTFOLDER_INDEX ON ZSDFOLDER (ZPARENTFOLDER)",
      "CREATE UNIQUE INDEX Z_SDFolder_UNIQUE_id ON ZSDFOLDER (ZID COLLATE BINARY ASC)",
      "CREATE INDEX ZSDINGREDIENT_ZRECIPE_INDEX ON ZSDINGREDIENT (ZRECIPE)",
      "CREATE INDEX ZSDRECIPE_ZPARENTFOLDER_INDEX ON ZSDRECIPE (ZPARENTFOLDER)",
      "CREATE INDEX Z_SDRecipe_SwiftDataIndexOnBinarycreationDatename ON ZSDRECIPE (ZCREATIONDATE COLLATE BINARY ASC, ZNAME COLLATE BINARY ASC)",
    ],
    entities: [("SDFolder", 0, 4), ("SDIngredient", 0, 31), ("SDRecipe", 0, 116)],
    rows: [
      """
      INSERT INTO ZSDFOLDER VALUES
        (1, 1, 1, NULL, 'systemAll', NULL, NULL, NULL, 'All', x'000102030405060708090A0B0C0D0E0F', NULL),
        (2, 1, 2, 1, NULL, NULL, NULL, 'user', 'Soups', x'101112131415161718191A1B1C1D1E1F', x'FFD8FF'),
        (4, 1, 1, 2, NULL, NULL, NULL, 'user', 'Cold', x'202122232425262728292A2B2C2D2E2F', NULL)
      """,
      """
      INSERT INTO ZSDRECIPE VALUES
        (7, 3, 1, 2, 700000000, 'Gazpacho', x'303132333435363738393A3B3C3D3E3F', x'\(archivedImages)'),
        (108, 3, 9, 4, 700000000.125, 'Borscht', x'404142434445464748494A4B4C4D4E4F', x'\(archivedImages)')
      """,
      """
      INSERT INTO ZSDINGREDIENT VALUES
        (1, 2, 1, 0, 0, 7, 1.5, 'tomatoes'), (2, 2, 1, 1, 1, 7, 2, 'cucumber'),
        (31, 2, 1, 0, 0, 108, 0.25, 'beets')
      """,
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "SDFolder",
          properties: [
            .cases(
              "folderType", ["systemAll", "systemStandard", "systemRecentlyDeleted", "user"]),
            .required("id", .uuid), .attribute("imageData", .binary), .required("name", .string),
            .toMany("folders", "SDFolder", inverse: "parentFolder", deleteRule: 2),
            .toOne("parentFolder", "SDFolder", inverse: "folders"),
            .toMany("recipes", "SDRecipe", inverse: "parentFolder", deleteRule: 2),
          ], unique: [["id"]]),
        .init(
          name: "SDIngredient",
          properties: [
            .required("amount", .double), .required("isComplete", .boolean),
            .required("positionPriority", .int64), .required("text", .string),
            .toOne("recipe", "SDRecipe", inverse: "ingredients"),
          ]),
        .init(
          name: "SDRecipe",
          properties: [
            .required("creationDate", .date), .required("id", .uuid),
            .required(
              "imagesData", .transformable,
              [
                "NSAttributeValueClassName": .text("Array<Data>"),
                "NSValueTransformerName": .text("NSSecureUnarchiveFromData"),
              ]),
            .required("name", .string),
            .toMany("ingredients", "SDIngredient", inverse: "recipe", deleteRule: 2),
            .toOne("parentFolder", "SDFolder", inverse: "recipes"),
          ], indexes: [("SwiftDataIndexOnBinarycreationDatename", ["creationDate", "name"])]),
      ], identifiers: ["1.0.0"],
      form: .init(hasKnownKeys: false)),
    frameworkVersion: 1327, identifiers: ["1.0.0"], history: .current)

  /// Two pictures, as `NSSecureUnarchiveFromData` keeps an array of them.
  private static let archivedImages = ModelArchive.bytes(
    .array([.data([0xFF, 0xD8, 0xFF]), .data([0x89, 0x50])])
  ).map { byte in
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }.joined()
}
