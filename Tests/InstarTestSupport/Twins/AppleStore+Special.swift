extension AppleStore {
  /// Albums: an ordered many-to-many whose table is named after the entity with the greater number; ordered children.
  public static let photos = AppleStore(
    name: "Photos",
    statements: [
      "CREATE TABLE ZASSET ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFAVORITE INTEGER, ZDURATION FLOAT, ZFILENAME VARCHAR )",
      "CREATE TABLE Z_1KEYWORDS ( Z_1ASSETATTRIBUTES INTEGER, Z_5KEYWORDS INTEGER, PRIMARY KEY (Z_1ASSETATTRIBUTES, Z_5KEYWORDS) )",
      "CREATE TABLE ZGENERICALBUM ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZKEYASSET INTEGER, ZPARENTFOLDER INTEGER, Z_FOK_PARENTFOLDER INTEGER, ZTITLE VARCHAR )",
      "CREATE TABLE Z_3ASSETS ( Z_3ALBUMS INTEGER, Z_1ASSETS INTEGER, Z_FOK_1ASSETS INTEGER, PRIMARY KEY (Z_3ALBUMS, Z_1ASSETS) )",
      "CREATE TABLE ZKEYWORD ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR )",
      "CREATE INDEX ZGENERICALBUM_ZPARENTFOLDER_INDEX ON ZGENERICALBUM (ZPARENTFOLDER)",
      "CREATE INDEX ZGENERICALBUM_ZKEYASSET_INDEX ON ZGENERICALBUM (ZKEYASSET)",
      "CREATE INDEX ZGENERICALBUM_Z_ENT_INDEX ON ZGENERICALBUM (Z_ENT)",
      "CREATE INDEX Z_3ASSETS_Z_1ASSETS_INDEX ON Z_3ASSETS (Z_1ASSETS, Z_3ALBUMS)",
      "CREATE INDEX Z_1KEYWORDS_Z_5KEYWORDS_INDEX ON Z_1KEYWORDS (Z_5KEYWORDS, Z_1ASSETATTRIBUTES)",
    ],
    entities: [
      ("Asset", 0, 9), ("GenericAlbum", 0, 7), ("Album", 2, 0), ("Folder", 2, 0),
      ("Keyword", 0, 2),
    ],
    rows: [
      "INSERT INTO ZASSET VALUES (1, 1, 1, 0, 0, 'a.jpg'), (4, 1, 3, 1, 2.5, 'b.mov'), (9, 1, 1, 0, 0, 'c.jpg')",
      """
      INSERT INTO ZGENERICALBUM VALUES (1, 4, 1, NULL, NULL, NULL, 'Root'), (2, 3, 2, 4, 1, 4096, 'Summer'),
        (7, 3, 1, NULL, 1, 2048, 'Winter')
      """,
      "INSERT INTO Z_3ASSETS VALUES (2, 9, 2048), (2, 1, 4096), (7, 4, 2048)",
      "INSERT INTO ZKEYWORD VALUES (1, 5, 1, 'sea'), (2, 5, 1, 'snow')",
      "INSERT INTO Z_1KEYWORDS VALUES (1, 1), (4, 2), (9, 1)",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "Asset",
          properties: [
            .attribute("duration", .double), .attribute("favorite", .int16),
            .attribute("filename", .string),
            .toMany("albums", "Album", inverse: "assets"),
            .toMany("albumsBeingKey", "GenericAlbum", inverse: "keyAsset"),
            .toMany("keywords", "Keyword", inverse: "assetAttributes"),
          ]),
        .init(
          name: "GenericAlbum", isAbstract: true,
          properties: [
            .attribute("title", .string),
            .toOne("keyAsset", "Asset", inverse: "albumsBeingKey"),
            .toOne("parentFolder", "Folder", inverse: "childCollections"),
          ]),
        .init(
          name: "Album", superentity: "GenericAlbum",
          properties: [.toMany("assets", "Asset", inverse: "albums", isOrdered: true)]),
        .init(
          name: "Folder", superentity: "GenericAlbum",
          properties: [
            .toMany(
              "childCollections", "GenericAlbum", inverse: "parentFolder", isOrdered: true,
              deleteRule: 2)
          ]),
        .init(
          name: "Keyword",
          properties: [
            .attribute("title", .string),
            .toMany("assetAttributes", "Asset", inverse: "keywords"),
          ]),
      ], form: .init(hasKnownKeys: false, hasBits: true)),
    frameworkVersion: 1345)

  /// Numbers that are given without regard to case, all that an app may keep in the metadata, and types that are rare.
  public static let netUsage = AppleStore(
    name: "netusage",
    statements: [
      "CREATE TABLE ZLIVEUSAGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZHASPROCESS INTEGER, ZTIMESTAMP TIMESTAMP, ZWIFIIN FLOAT, ZCOST DECIMAL )",
      "CREATE TABLE ZNETWORKATTACHMENT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZKIND INTEGER, ZFIRSTTIMESTAMP TIMESTAMP, ZIDENTIFIER VARCHAR )",
      "CREATE TABLE ZNWACTIVITYFRAGMENT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDATA BLOB )",
      "CREATE TABLE ZNWACTIVITYMETRICDATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTYPE INTEGER, ZATTACHMENT INTEGER, ZPAYLOAD BLOB )",
      "CREATE TABLE ZPROCESS ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPROCNAME VARCHAR, ZHOME VARCHAR )",
      "CREATE INDEX ZLIVEUSAGE_ZHASPROCESS_INDEX ON ZLIVEUSAGE (ZHASPROCESS)",
      "CREATE INDEX ZNWACTIVITYMETRICDATA_ZATTACHMENT_INDEX ON ZNWACTIVITYMETRICDATA (ZATTACHMENT)",
      "CREATE UNIQUE INDEX Z_Process_UNIQUE_procName ON ZPROCESS (ZPROCNAME COLLATE BINARY ASC)",
    ],
    entities: [
      ("LiveUsage", 0, 40), ("NetworkAttachment", 0, 2), ("NWActivityFragment", 0, 0),
      ("NWActivityMetricData", 0, 1), ("Process", 0, 3),
    ],
    rows: [
      "INSERT INTO ZPROCESS VALUES (1, 5, 2, 'mDNSResponder', 'file:///usr/'), (3, 5, 1, 'apsd', NULL)",
      "INSERT INTO ZLIVEUSAGE VALUES (1, 1, 1, 1, 700000000, 1024.5, 10.11), (40, 1, 9, 3, 700000000.5, 0, 7)",
      "INSERT INTO ZNETWORKATTACHMENT VALUES (1, 2, 1, 1, 1, 'wifi'), (2, 2, 1, NULL, NULL, NULL)",
      "INSERT INTO ZNWACTIVITYMETRICDATA VALUES (1, 4, 1, 3, 2, x'0102')",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "LiveUsage",
          properties: [
            .attribute("cost", .decimal), .attribute("timeStamp", .date),
            .attribute("wifiIn", .double),
            .toOne("hasProcess", "Process", inverse: "hasLiveUsage"),
          ]),
        .init(
          name: "NetworkAttachment",
          properties: [
            .attribute("firstTimeStamp", .date), .attribute("identifier", .string),
            .attribute("kind", .int16),
            .toMany("metrics", "NWActivityMetricData", inverse: "attachment"),
          ]),
        .init(name: "NWActivityFragment", properties: [.attribute("data", .binary)]),
        .init(
          name: "NWActivityMetricData",
          properties: [
            .attribute("payload", .binary), .attribute("type", .int32),
            .toOne("attachment", "NetworkAttachment", inverse: "metrics"),
          ]),
        .init(
          name: "Process",
          properties: [
            .attribute("home", .uri), .required("procName", .string),
            .toMany("hasLiveUsage", "LiveUsage", inverse: "hasProcess", deleteRule: 2),
          ], unique: [["procName"]]),
      ], identifiers: ["2"]),
    frameworkVersion: 866, identifiers: ["2"],
    appKeys: [
      "STUnique": "local", "DefaultDataImported": true, "ratio": 0.5, "count": 12,
      "token": [UInt8](repeating: 7, count: 20).map { Int($0) }, "names": ["a", "b"],
    ])

  /// Messages, of a framework without archived models: an entity with itself, twice, and indexes after each table.
  public static let messages = AppleStore(
    name: "Kik",
    statements: [
      "CREATE TABLE ZKIKCHAT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFLAGS INTEGER, ZUSER INTEGER, ZDATEUPDATED TIMESTAMP )",
      "CREATE INDEX ZKIKCHAT_ZUSER_INDEX ON ZKIKCHAT (ZUSER)",
      "CREATE TABLE ZKIKMESSAGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTYPE INTEGER, ZUSER INTEGER, ZRECEIVEDTIMESTAMP TIMESTAMP, ZBODY VARCHAR )",
      "CREATE INDEX ZKIKMESSAGE_ZUSER_INDEX ON ZKIKMESSAGE (ZUSER)",
      "CREATE TABLE ZKIKUSER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFLAGS INTEGER, ZCHATUSER INTEGER, ZDISPLAYNAME VARCHAR, ZJID VARCHAR, ZPPURL VARCHAR )",
      "CREATE TABLE Z_3MEMBERS ( Z_3MEMBERSINVERSE INTEGER, Z_3MEMBERS INTEGER, PRIMARY KEY (Z_3MEMBERSINVERSE, Z_3MEMBERS) )",
      "CREATE TABLE Z_3BANSINVERSE ( Z_3BANS INTEGER, Z_3BANSINVERSE INTEGER, PRIMARY KEY (Z_3BANS, Z_3BANSINVERSE) )",
      "CREATE INDEX ZKIKUSER_ZJID_INDEX ON ZKIKUSER (ZJID)",
      "CREATE INDEX ZKIKUSER_ZCHATUSER_INDEX ON ZKIKUSER (ZCHATUSER)",
    ],
    entities: [("KikChat", 0, 4), ("KikMessage", 0, 77), ("KikUser", 0, 5)],
    rows: [
      "INSERT INTO ZKIKUSER VALUES (1, 3, 1, 0, 4, 'Ann', 'ann@k', NULL), (2, 3, 6, 1, NULL, 'Group', 'g@k', 'http://x'), (5, 3, 1, 0, NULL, 'Bob', 'bob@k', NULL)",
      "INSERT INTO ZKIKCHAT VALUES (4, 1, 2, 0, 1, 500000000.5)",
      "INSERT INTO ZKIKMESSAGE VALUES (1, 2, 1, 1, 1, 500000000, 'hi'), (77, 2, 2, 2, 5, 500000001.25, NULL)",
      "INSERT INTO Z_3MEMBERS VALUES (2, 1), (2, 5)", "INSERT INTO Z_3BANSINVERSE VALUES (5, 2)",
    ],
    model: nil, frameworkVersion: 519)

  /// Uniqueness as a constraint of the table, of one property and of several; an index over several.
  public static let constraints = AppleStore(
    name: "Constraints",
    statements: [
      "CREATE TABLE ZA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNUMBER INTEGER, ZOWNER INTEGER, ZCODE VARCHAR, ZREGION VARCHAR, CONSTRAINT ZNUMBER UNIQUE (ZNUMBER), CONSTRAINT ZCODE_ZREGION UNIQUE (ZCODE, ZREGION))",
      "CREATE TABLE ZB ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE INDEX ZA_ZOWNER_INDEX ON ZA (ZOWNER)",
    ],
    entities: [("A", 0, 3), ("B", 0, 1)],
    rows: [
      "INSERT INTO ZB VALUES (1, 2, 1, 'b')",
      "INSERT INTO ZA VALUES (1, 1, 1, 5, 1, 'x', 'eu'), (2, 1, 1, NULL, NULL, 'x', 'us'), (3, 1, 1, NULL, 1, NULL, 'us')",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "A",
          properties: [
            .attribute("code", .string), .attribute("number", .int64),
            .attribute("region", .string), .toOne("owner", "B", inverse: "as"),
          ], unique: [["number"], ["code", "region"]]),
        .init(
          name: "B",
          properties: [.attribute("name", .string), .toMany("as", "A", inverse: "owner")]),
      ], form: .init(hasKnownKeys: false, hasBits: false, hasProxies: false)),
    frameworkVersion: 637)

  /// Maintenance, migrated in place by the app before: the tables that changed then stand behind the system's, an
  /// entity has its name of before in `Z_PRIMARYKEY`.
  public static let motorcycles = AppleStore(
    name: "motorcyclemaintenance",
    statements: [
      "CREATE TABLE ZFUELTYPE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )"
    ],
    entities: [
      ("FuelType", 0, 2), ("Motorcycle", 0, 2), ("MotorcycleMaintenance", 0, 6),
      ("MotorcycleType", 0, 1),
    ],
    rows: [
      "CREATE TABLE ZMOTORCYCLEMAINTENANCE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZODOMETER INTEGER, ZMOTORCYCLE INTEGER, Z_FOK_MOTORCYCLE INTEGER, ZDATE TIMESTAMP, ZCOST DECIMAL, ZTITLE VARCHAR )",
      "CREATE TABLE ZMOTORCYCLETYPE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE TABLE ZMOTORCYCLE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFUELTYPE INTEGER, ZTYPE INTEGER, ZMAKER VARCHAR, ZIMAGE BLOB )",
      "CREATE INDEX ZMOTORCYCLE_ZFUELTYPE_INDEX ON ZMOTORCYCLE (ZFUELTYPE)",
      "CREATE INDEX ZMOTORCYCLE_ZTYPE_INDEX ON ZMOTORCYCLE (ZTYPE)",
      "CREATE INDEX ZMOTORCYCLEMAINTENANCE_ZMOTORCYCLE_INDEX ON ZMOTORCYCLEMAINTENANCE (ZMOTORCYCLE)",
      "INSERT INTO ZFUELTYPE VALUES (1, 1, 1, 'petrol'), (2, 1, 1, 'electric')",
      "INSERT INTO ZMOTORCYCLETYPE VALUES (1, 4, 1, 'enduro')",
      "INSERT INTO ZMOTORCYCLE VALUES (1, 2, 3, 1, 1, 'KTM', x'0102'), (2, 2, 1, 2, NULL, 'Zero', NULL)",
      """
      INSERT INTO ZMOTORCYCLEMAINTENANCE VALUES (1, 3, 1, 1000, 1, 2048, 600000000, 10.11, 'oil'),
        (2, 3, 1, 2000, 1, 3072, 600000001, 20, 'chain'), (6, 3, 1, 10, 2, 2048, 600000002.5, NULL, 'belt')
      """,
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "FuelType",
          properties: [
            .attribute("name", .string), .toMany("motorcycles", "Motorcycle", inverse: "fuelType"),
          ]),
        .init(
          name: "Motorcycle",
          properties: [
            .attribute("image", .binary), .attribute("maker", .string),
            .toOne("fuelType", "FuelType", inverse: "motorcycles"),
            .toMany(
              "maintenances", "MotorcycleMaintenance", inverse: "motorcycle", isOrdered: true,
              deleteRule: 2),
            .toOne("type", "MotorcycleType", inverse: "motorcycles"),
          ]),
        .init(
          name: "MotorcycleMaintenance",
          properties: [
            .attribute("cost", .decimal), .attribute("date", .date),
            .attribute("odometer", .int32), .attribute("title", .string),
            .toOne("motorcycle", "Motorcycle", inverse: "maintenances"),
          ]),
        .init(
          name: "MotorcycleType",
          properties: [
            .attribute("name", .string), .toMany("motorcycles", "Motorcycle", inverse: "type"),
          ]),
      ]),
    frameworkVersion: 847, staleNames: ["MotorcycleMaintenance": "Maintenance"])

  /// Of which nothing is left but tables and rows: no property list, an empty cache, history of a framework that has no
  /// table of its strings.
  public static let scrubbed = AppleStore(
    name: "NotesV7",
    statements: [
      "CREATE TABLE ZACCOUNT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDIDCHOOSETOMIGRATE INTEGER, ZNAME VARCHAR )",
      "CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZACCOUNT INTEGER, ZDATEEDITED TIMESTAMP, ZTITLE VARCHAR, ZBODY BLOB )",
      "CREATE INDEX ZNOTE_ZACCOUNT_INDEX ON ZNOTE (ZACCOUNT)",
    ],
    entities: [("Account", 0, 1), ("Note", 0, 5)],
    rows: [
      "INSERT INTO ZACCOUNT VALUES (1, 1, 1, 1, 'On My Mac')",
      "INSERT INTO ZNOTE VALUES (1, 2, 1, 1, 500000000, 'One', x'3C'), (5, 2, 4, 1, 500000000.5, NULL, NULL)",
    ],
    model: nil, frameworkVersion: 851, history: .withoutStrings, hasMetadata: false)

  /// All of them.
  public static let all =
    withoutModels + [cocktails, recipes, accounts, photos, netUsage, messages]

  /// Those that differ most from the files at hand, and have no models in `Tests/Fixtures/Plugins/Kitchens.swift`.
  public static let withoutModels = [notes, knowledge, constraints, motorcycles, scrubbed]
}
