extension AppleStore {
  /// Notes: eleven entities in one table, with the same names again and again; a key that may refer to any of them; a
  /// join table that is named after the entity with the greater number, as those of Notes are.
  public static let notes = AppleStore(
    name: "NoteStore",
    statements: [
      "CREATE TABLE ZICCLOUDSTATE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCURRENTLOCALVERSION INTEGER, ZCLOUDSYNCINGOBJECT INTEGER, Z2_CLOUDSYNCINGOBJECT INTEGER, ZLOCALVERSIONDATE TIMESTAMP )",
      "CREATE TABLE ZICCLOUDSYNCINGOBJECT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZMARKEDFORDELETION INTEGER, ZCLOUDSTATE INTEGER, ZACCOUNT INTEGER, ZNOTE INTEGER, ZMEDIA INTEGER, ZACCOUNT1 INTEGER, ZACCOUNT2 INTEGER, ZATTACHMENT INTEGER, ZISPINNED INTEGER, ZACCOUNT3 INTEGER, ZNOTEDATA INTEGER, ZACCOUNTTYPE INTEGER, ZFOLDERTYPE INTEGER, ZACCOUNT4 INTEGER, ZPARENT INTEGER, ZCREATIONDATE TIMESTAMP, ZDURATION FLOAT, ZCREATIONDATE1 TIMESTAMP, ZIDENTIFIER VARCHAR, ZTITLE VARCHAR, ZTYPEUTI VARCHAR, ZTYPEUTI1 VARCHAR, ZFILENAME VARCHAR, ZTITLE1 VARCHAR, ZNAME VARCHAR, ZTITLE2 VARCHAR, ZSERVERRECORDDATA BLOB, ZMETADATA BLOB )",
      "CREATE TABLE Z_12NOTES ( Z_12FOLDERS INTEGER, Z_9NOTES INTEGER, PRIMARY KEY (Z_12FOLDERS, Z_9NOTES) )",
      "CREATE TABLE ZICNOTEDATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNOTE INTEGER, ZDATA BLOB )",
      "CREATE INDEX ZICCLOUDSTATE_ZCLOUDSYNCINGOBJECT_INDEX ON ZICCLOUDSTATE (ZCLOUDSYNCINGOBJECT)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZCLOUDSTATE_INDEX ON ZICCLOUDSYNCINGOBJECT (ZCLOUDSTATE)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZACCOUNT_INDEX ON ZICCLOUDSYNCINGOBJECT (ZACCOUNT)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZNOTE_INDEX ON ZICCLOUDSYNCINGOBJECT (ZNOTE)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZMEDIA_INDEX ON ZICCLOUDSYNCINGOBJECT (ZMEDIA)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZACCOUNT1_INDEX ON ZICCLOUDSYNCINGOBJECT (ZACCOUNT1)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZACCOUNT2_INDEX ON ZICCLOUDSYNCINGOBJECT (ZACCOUNT2)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZATTACHMENT_INDEX ON ZICCLOUDSYNCINGOBJECT (ZATTACHMENT)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZACCOUNT3_INDEX ON ZICCLOUDSYNCINGOBJECT (ZACCOUNT3)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZPARENT_INDEX ON ZICCLOUDSYNCINGOBJECT (ZPARENT)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZACCOUNT4_INDEX ON ZICCLOUDSYNCINGOBJECT (ZACCOUNT4)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_ZNOTEDATA_INDEX ON ZICCLOUDSYNCINGOBJECT (ZNOTEDATA)",
      "CREATE INDEX ZICCLOUDSYNCINGOBJECT_Z_ENT_INDEX ON ZICCLOUDSYNCINGOBJECT (Z_ENT)",
      "CREATE INDEX Z_ICCloudSyncingObject_byIdentifier ON ZICCLOUDSYNCINGOBJECT (ZIDENTIFIER COLLATE BINARY ASC)",
      "CREATE INDEX Z_ICNote_byTitleIndex ON ZICCLOUDSYNCINGOBJECT (ZTITLE1 COLLATE BINARY ASC, ZIDENTIFIER COLLATE BINARY ASC)",
      "CREATE INDEX Z_12NOTES_Z_9NOTES_INDEX ON Z_12NOTES (Z_9NOTES, Z_12FOLDERS)",
      "CREATE INDEX ZICNOTEDATA_ZNOTE_INDEX ON ZICNOTEDATA (ZNOTE)",
    ],
    entities: [
      ("ICCloudState", 0, 30), ("ICCloudSyncingObject", 0, 50), ("ICAccountData", 2, 0),
      ("ICBaseAttachment", 2, 0), ("ICAttachment", 4, 0), ("ICInlineAttachment", 4, 0),
      ("ICDeviceMigrationState", 2, 0), ("ICMedia", 2, 0), ("ICNote", 2, 0),
      ("ICNoteContainer", 2, 0), ("ICAccount", 10, 0), ("ICFolder", 10, 0), ("ICNoteData", 0, 9),
    ],
    rows: [
      "INSERT INTO ZICCLOUDSTATE VALUES (1, 1, 2, 4, 3, 9, 700000000), (30, 1, 1, 1, 1, 11, NULL), (31, 1, 1, 2, 6, 5, 5.5)",
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZMARKEDFORDELETION, ZIDENTIFIER,
        ZCLOUDSTATE, ZACCOUNTTYPE, ZNAME) VALUES (1, 11, 3, 0, 'account', 30, 1, 'iCloud')
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZMARKEDFORDELETION, ZIDENTIFIER,
        ZACCOUNT4, ZFOLDERTYPE, ZTITLE2, ZPARENT) VALUES (2, 12, 1, 0, 'folder', 1, 0, 'Notes', NULL),
        (4, 12, 1, 0, 'sub', 1, 1, 'Recipes', 2)
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZMARKEDFORDELETION, ZIDENTIFIER,
        ZCLOUDSTATE, ZACCOUNT3, ZISPINNED, ZNOTEDATA, ZTITLE1, ZCREATIONDATE1) VALUES
        (3, 9, 7, 0, 'note-1', 1, 1, 1, 1, 'Soup', 650000000.5), (5, 9, 1, 1, 'note-2', NULL, 1, 0, 9, NULL, 650000001)
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZIDENTIFIER, ZNOTE, ZMEDIA, ZTITLE, ZTYPEUTI,
        ZCREATIONDATE, ZDURATION, ZCLOUDSTATE) VALUES (6, 5, 1, 'attachment', 3, 7, 'Photo', 'public.jpeg', 3, 1.5, 31)
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZIDENTIFIER, ZATTACHMENT, ZFILENAME) VALUES
        (7, 8, 1, 'media', 6, 'a.jpg')
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZIDENTIFIER, ZNOTE, ZTYPEUTI1, ZACCOUNT1) VALUES
        (8, 6, 1, 'tag', 3, 'com.apple.hashtag', 1)
      """,
      """
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZIDENTIFIER, ZACCOUNT2) VALUES (9, 7, 1, 'device', 1);
      INSERT INTO ZICCLOUDSYNCINGOBJECT (Z_PK, Z_ENT, Z_OPT, ZIDENTIFIER, ZACCOUNT, ZMETADATA, ZSERVERRECORDDATA)
        VALUES (50, 3, 1, 'data', 1, x'0102', x'62706C697374')
      """,
      "INSERT INTO Z_12NOTES VALUES (2, 3), (4, 3), (2, 5)",
      "INSERT INTO ZICNOTEDATA VALUES (1, 13, 1, 3, x'1F8B08'), (9, 13, 1, 5, NULL)",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "ICCloudState",
          properties: [
            .attribute("currentLocalVersion", .int64), .attribute("localVersionDate", .date),
            .toOne("cloudSyncingObject", "ICCloudSyncingObject", inverse: "cloudState"),
          ]),
        .init(
          name: "ICCloudSyncingObject", isAbstract: true,
          properties: [
            .attribute("identifier", .string),
            .attribute(
              "markedForDeletion", .boolean, isOptional: true, ["NSDefaultValue": .boolean(false)]),
            .attribute("serverRecordData", .binary),
            .toOne("cloudState", "ICCloudState", inverse: "cloudSyncingObject", deleteRule: 2),
          ], indexes: [("byIdentifier", ["identifier"])]),
        .init(
          name: "ICAccountData", superentity: "ICCloudSyncingObject",
          properties: [
            .attribute("metadata", .binary),
            .toOne("account", "ICAccount", inverse: "accountData"),
          ]),
        .init(
          name: "ICBaseAttachment", superentity: "ICCloudSyncingObject", isAbstract: true,
          properties: [.toOne("note", "ICNote", inverse: "attachments")]),
        .init(
          name: "ICAttachment", superentity: "ICBaseAttachment",
          properties: [
            .attribute("creationDate", .date), .attribute("duration", .double),
            .attribute("title", .string), .attribute("typeUTI", .string),
            .toOne("media", "ICMedia", inverse: "attachment", deleteRule: 2),
          ]),
        .init(
          name: "ICInlineAttachment", superentity: "ICBaseAttachment",
          properties: [
            .attribute("typeUTI", .string),
            .toOne("account", "ICAccount", inverse: "inlineAttachments"),
          ]),
        .init(
          name: "ICDeviceMigrationState", superentity: "ICCloudSyncingObject",
          properties: [.toOne("account", "ICAccount", inverse: "deviceMigrationStates")]),
        .init(
          name: "ICMedia", superentity: "ICCloudSyncingObject",
          properties: [
            .attribute("filename", .string),
            .toOne("attachment", "ICAttachment", inverse: "media"),
          ]),
        .init(
          name: "ICNoteContainer", superentity: "ICCloudSyncingObject", isAbstract: true,
          properties: []),
        .init(
          name: "ICAccount", superentity: "ICNoteContainer",
          properties: [
            .attribute("accountType", .int32), .attribute("name", .string),
            .toMany("accountData", "ICAccountData", inverse: "account"),
            .toMany("deviceMigrationStates", "ICDeviceMigrationState", inverse: "account"),
            .toMany("folders", "ICFolder", inverse: "account", deleteRule: 2),
            .toMany("inlineAttachments", "ICInlineAttachment", inverse: "account"),
            .toMany("notes", "ICNote", inverse: "account"),
          ]),
        .init(
          name: "ICFolder", superentity: "ICNoteContainer",
          properties: [
            .attribute("folderType", .int16), .attribute("title", .string),
            .toOne("account", "ICAccount", inverse: "folders"),
            .toMany("children", "ICFolder", inverse: "parent"),
            .toMany("notes", "ICNote", inverse: "folders"),
            .toOne("parent", "ICFolder", inverse: "children"),
          ]),
        .init(
          name: "ICNote", superentity: "ICCloudSyncingObject",
          properties: [
            .attribute("creationDate", .date), .attribute("isPinned", .boolean),
            .attribute("title", .string), .fetched("allAttachments"),
            .toOne("account", "ICAccount", inverse: "notes"),
            .toMany("attachments", "ICBaseAttachment", inverse: "note", deleteRule: 2),
            .toMany("folders", "ICFolder", inverse: "notes"),
            .toOne("noteData", "ICNoteData", inverse: "note", deleteRule: 2),
          ], indexes: [("byTitleIndex", ["title", "identifier"])]),
        .init(
          name: "ICNoteData",
          properties: [
            .attribute("data", .binary), .toOne("note", "ICNote", inverse: "noteData"),
          ]),
      ]),
    frameworkVersion: 1145,
    appKeys: ["NSStoreICAccountIdentifiers": ["account"], "ICMigrated": true])

  /// What a system noted of its user: names with underscores, a key to any object, a many-to-many below a hierarchy's
  /// root.
  public static let knowledge = AppleStore(
    name: "knowledgeC",
    statements: [
      "CREATE TABLE ZCUSTOMMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZINTEGERVALUE INTEGER, ZDATEVALUE TIMESTAMP, ZDOUBLEVALUE FLOAT, ZNAME VARCHAR, ZBINARYVALUE BLOB )",
      "CREATE TABLE Z_1EVENT ( Z_1CUSTOMMETADATA INTEGER, Z_6EVENT INTEGER, PRIMARY KEY (Z_1CUSTOMMETADATA, Z_6EVENT) )",
      "CREATE TABLE ZHISTOGRAMVALUE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZHISTOGRAM INTEGER, ZCOUNT DECIMAL )",
      "CREATE TABLE ZKEYVALUE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDOMAIN VARCHAR, ZKEY VARCHAR, ZVALUE BLOB )",
      "CREATE TABLE ZOBJECT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSOURCE INTEGER, ZCATEGORYTYPE INTEGER, ZCONFIDENCE INTEGER, ZSTRUCTUREDMETADATA INTEGER, ZVALUE INTEGER, Z4_VALUE INTEGER, ZCREATIONDATE TIMESTAMP, ZENDDATE TIMESTAMP, ZSTARTDATE TIMESTAMP, ZUUID VARCHAR, ZVALUESTRING VARCHAR, ZSTREAMNAME VARCHAR, ZVALUESTRING1 VARCHAR )",
      "CREATE TABLE ZSOURCE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBUNDLEID VARCHAR )",
      "CREATE TABLE ZSTRUCTUREDMETADATA ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, Z_DKAPPLICATIONMETADATAKEY__ISBACKGROUND INTEGER, Z_DKLOCATIONMETADATAKEY__LATITUDE FLOAT, Z_DKAPPLICATIONMETADATAKEY__LAUNCHREASON VARCHAR, ZMETADATAHASH VARCHAR, Z_DKINTENTMETADATAKEY__SERIALIZEDINTERACTION BLOB )",
      "CREATE INDEX Z_1EVENT_Z_6EVENT_INDEX ON Z_1EVENT (Z_6EVENT, Z_1CUSTOMMETADATA)",
      "CREATE INDEX ZHISTOGRAMVALUE_ZHISTOGRAM_INDEX ON ZHISTOGRAMVALUE (ZHISTOGRAM)",
      "CREATE INDEX Z_KeyValue_byDomain ON ZKEYVALUE (ZDOMAIN COLLATE BINARY ASC)",
      "CREATE INDEX ZOBJECT_ZSOURCE_INDEX ON ZOBJECT (ZSOURCE)",
      "CREATE INDEX ZOBJECT_ZSTRUCTUREDMETADATA_INDEX ON ZOBJECT (ZSTRUCTUREDMETADATA)",
      "CREATE INDEX ZOBJECT_ZVALUE_INDEX ON ZOBJECT (ZVALUE)",
      "CREATE INDEX ZOBJECT_Z_ENT_INDEX ON ZOBJECT (Z_ENT)",
      "CREATE INDEX Z_Event_streamAndDates ON ZOBJECT (ZSTREAMNAME COLLATE BINARY ASC, ZSTARTDATE COLLATE BINARY ASC)",
      "CREATE UNIQUE INDEX Z_StructuredMetadata_UNIQUE_metadataHash ON ZSTRUCTUREDMETADATA (ZMETADATAHASH COLLATE BINARY ASC)",
    ],
    entities: [
      ("CustomMetadata", 0, 5), ("HistogramValue", 0, 2), ("KeyValue", 0, 3), ("Object", 0, 900),
      ("Category", 4, 0), ("Event", 4, 0), ("Histogram", 4, 0), ("Source", 0, 2),
      ("StructuredMetadata", 0, 44),
    ],
    rows: [
      "INSERT INTO ZSOURCE VALUES (1, 8, 1, 'com.apple.safari'), (2, 8, 1, NULL)",
      """
      INSERT INTO ZSTRUCTUREDMETADATA VALUES (3, 9, 1, 1, 52.5, 'com.apple.SpringBoard.home', 'h1', x'00'),
        (44, 9, 1, NULL, NULL, NULL, 'h2', NULL)
      """,
      """
      INSERT INTO ZOBJECT VALUES
        (1, 5, 1, 1, 7, NULL, NULL, NULL, NULL, 500, NULL, NULL, 'u1', 'work', NULL, NULL),
        (2, 6, 1, 1, NULL, 3, 3, 1, 5, 501, 502.5, 501, 'u2', NULL, '/app/inFocus', 'com.apple.mail'),
        (3, 6, 2, 2, NULL, 1, 44, 2, 6, 503, 504, 503, 'u3', NULL, '/app/inFocus', NULL),
        (899, 7, 1, NULL, NULL, NULL, NULL, NULL, NULL, 505, NULL, NULL, 'u4', NULL, NULL, NULL),
        (900, 4, 1, NULL, NULL, NULL, NULL, NULL, NULL, 506, NULL, NULL, 'u5', NULL, NULL, NULL)
      """,
      "INSERT INTO ZHISTOGRAMVALUE VALUES (1, 2, 1, 899, 10), (2, 2, 1, 899, 2.5)",
      "INSERT INTO ZKEYVALUE VALUES (1, 3, 1, 'd', 'k', x'0A'), (3, 3, 1, 'd', 'l', NULL)",
      "INSERT INTO ZCUSTOMMETADATA VALUES (1, 1, 1, 4, NULL, NULL, 'a', NULL), (5, 1, 1, NULL, 9.25, 2.5, 'b', x'FF')",
      "INSERT INTO Z_1EVENT VALUES (1, 2), (5, 2), (5, 3)",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "CustomMetadata",
          properties: [
            .attribute("binaryValue", .binary), .attribute("dateValue", .date),
            .attribute("doubleValue", .double), .attribute("integerValue", .int64),
            .attribute("name", .string),
            .toMany("event", "Event", inverse: "customMetadata"),
          ]),
        .init(
          name: "HistogramValue",
          properties: [
            .attribute("count", .decimal),
            .toOne("histogram", "Histogram", inverse: "values"),
          ]),
        .init(
          name: "KeyValue",
          properties: [
            .attribute("domain", .string), .attribute("key", .string),
            .attribute("value", .binary),
          ], indexes: [("byDomain", ["domain"])]),
        .init(
          name: "Object",
          properties: [
            .attribute("creationDate", .date), .attribute("uuid", .string),
            .toOne("source", "Source"),
          ]),
        .init(
          name: "Category", superentity: "Object",
          properties: [
            .attribute("categoryType", .int64), .attribute("valueString", .string),
          ]),
        .init(
          name: "Event", superentity: "Object",
          properties: [
            .attribute("confidence", .int16), .attribute("endDate", .date),
            .attribute("startDate", .date), .attribute("streamName", .string),
            .attribute("valueString", .string),
            .toMany("customMetadata", "CustomMetadata", inverse: "event"),
            .toOne("structuredMetadata", "StructuredMetadata"),
            .toOne("value", "Object"),
          ], indexes: [("streamAndDates", ["streamName", "startDate"])]),
        .init(
          name: "Histogram", superentity: "Object",
          properties: [
            .toMany("values", "HistogramValue", inverse: "histogram", deleteRule: 2)
          ]),
        .init(name: "Source", properties: [.attribute("bundleID", .string)]),
        .init(
          name: "StructuredMetadata",
          properties: [
            .attribute("_DKApplicationMetadataKey__isBackground", .boolean),
            .attribute("_DKApplicationMetadataKey__launchReason", .string),
            .attribute("_DKIntentMetadataKey__serializedInteraction", .binary),
            .attribute("_DKLocationMetadataKey__latitude", .double),
            .attribute("metadataHash", .string),
          ], unique: [["metadataHash"]]),
      ], identifiers: ["v4"], form: .init(hasBits: false, hasProxies: false)),
    frameworkVersion: 1044, identifiers: ["v4"])

  /// Accounts: five many-to-many relationships, and a version of the app's own in the metadata.
  public static let accounts = AppleStore(
    name: "Accounts3",
    statements: [
      "CREATE TABLE ZACCESSOPTIONSKEY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE TABLE Z_1OWNINGACCOUNTTYPES ( Z_1ACCESSKEYS INTEGER, Z_4OWNINGACCOUNTTYPES INTEGER, PRIMARY KEY (Z_1ACCESSKEYS, Z_4OWNINGACCOUNTTYPES) )",
      "CREATE TABLE ZACCOUNT ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZACTIVE INTEGER, ZAUTHENTICATED INTEGER, ZACCOUNTTYPE INTEGER, ZPARENTACCOUNT INTEGER, ZDATE TIMESTAMP, ZIDENTIFIER VARCHAR, ZUSERNAME VARCHAR, ZDATACLASSPROPERTIES BLOB )",
      "CREATE TABLE Z_2ENABLEDDATACLASSES ( Z_2ENABLEDACCOUNTS INTEGER, Z_5ENABLEDDATACLASSES INTEGER, PRIMARY KEY (Z_2ENABLEDACCOUNTS, Z_5ENABLEDDATACLASSES) )",
      "CREATE TABLE Z_2PROVISIONEDDATACLASSES ( Z_2PROVISIONEDACCOUNTS INTEGER, Z_5PROVISIONEDDATACLASSES INTEGER, PRIMARY KEY (Z_2PROVISIONEDACCOUNTS, Z_5PROVISIONEDDATACLASSES) )",
      "CREATE TABLE ZACCOUNTPROPERTY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER, ZKEY VARCHAR, ZVALUE BLOB )",
      "CREATE TABLE ZACCOUNTTYPE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZENCRYPTACCOUNTPROPERTIES INTEGER, ZIDENTIFIER VARCHAR )",
      "CREATE TABLE Z_4SUPPORTEDDATACLASSES ( Z_4SUPPORTEDTYPES INTEGER, Z_5SUPPORTEDDATACLASSES INTEGER, PRIMARY KEY (Z_4SUPPORTEDTYPES, Z_5SUPPORTEDDATACLASSES) )",
      "CREATE TABLE Z_4SYNCABLEDATACLASSES ( Z_4SYNCABLETYPES INTEGER, Z_5SYNCABLEDATACLASSES INTEGER, PRIMARY KEY (Z_4SYNCABLETYPES, Z_5SYNCABLEDATACLASSES) )",
      "CREATE TABLE ZDATACLASS ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
      "CREATE INDEX Z_1OWNINGACCOUNTTYPES_Z_4OWNINGACCOUNTTYPES_INDEX ON Z_1OWNINGACCOUNTTYPES (Z_4OWNINGACCOUNTTYPES, Z_1ACCESSKEYS)",
      "CREATE INDEX ZACCOUNT_ZACCOUNTTYPE_INDEX ON ZACCOUNT (ZACCOUNTTYPE)",
      "CREATE INDEX ZACCOUNT_ZPARENTACCOUNT_INDEX ON ZACCOUNT (ZPARENTACCOUNT)",
      "CREATE INDEX Z_2ENABLEDDATACLASSES_Z_5ENABLEDDATACLASSES_INDEX ON Z_2ENABLEDDATACLASSES (Z_5ENABLEDDATACLASSES, Z_2ENABLEDACCOUNTS)",
      "CREATE INDEX Z_2PROVISIONEDDATACLASSES_Z_5PROVISIONEDDATACLASSES_INDEX ON Z_2PROVISIONEDDATACLASSES (Z_5PROVISIONEDDATACLASSES, Z_2PROVISIONEDACCOUNTS)",
      "CREATE INDEX ZACCOUNTPROPERTY_ZOWNER_INDEX ON ZACCOUNTPROPERTY (ZOWNER)",
      "CREATE INDEX Z_4SUPPORTEDDATACLASSES_Z_5SUPPORTEDDATACLASSES_INDEX ON Z_4SUPPORTEDDATACLASSES (Z_5SUPPORTEDDATACLASSES, Z_4SUPPORTEDTYPES)",
      "CREATE INDEX Z_4SYNCABLEDATACLASSES_Z_5SYNCABLEDATACLASSES_INDEX ON Z_4SYNCABLEDATACLASSES (Z_5SYNCABLEDATACLASSES, Z_4SYNCABLETYPES)",
    ],
    entities: [
      ("AccessOptionsKey", 0, 3), ("Account", 0, 6), ("AccountProperty", 0, 12),
      ("AccountType", 0, 4), ("Dataclass", 0, 5),
    ],
    rows: [
      "INSERT INTO ZACCESSOPTIONSKEY VALUES (1, 1, 1, 'FacebookAppId'), (3, 1, 1, 'Audience')",
      "INSERT INTO ZACCOUNTTYPE VALUES (1, 4, 1, 0, 'com.apple.facebook'), (4, 4, 2, 1, 'com.apple.imap')",
      "INSERT INTO ZDATACLASS VALUES (1, 5, 1, 'mail'), (2, 5, 1, 'contacts'), (5, 5, 1, 'notes')",
      """
      INSERT INTO ZACCOUNT VALUES (1, 2, 4, 1, 1, 4, NULL, 400000000.75, 'A1', 'me@example.org', x'6270'),
        (6, 2, 1, 0, NULL, 4, 1, NULL, 'A2', NULL, NULL)
      """,
      "INSERT INTO ZACCOUNTPROPERTY VALUES (2, 3, 1, 1, 'host', x'62'), (12, 3, 1, 6, 'port', NULL)",
      "INSERT INTO Z_1OWNINGACCOUNTTYPES VALUES (1, 1), (3, 1)",
      "INSERT INTO Z_2ENABLEDDATACLASSES VALUES (1, 1), (1, 2), (6, 5)",
      "INSERT INTO Z_2PROVISIONEDDATACLASSES VALUES (1, 1), (1, 5)",
      "INSERT INTO Z_4SUPPORTEDDATACLASSES VALUES (1, 2), (4, 1), (4, 5)",
      "INSERT INTO Z_4SYNCABLEDATACLASSES VALUES (4, 5)",
    ],
    model: ArchivedModel(
      entities: [
        .init(
          name: "AccessOptionsKey",
          properties: [
            .attribute("name", .string),
            .toMany("owningAccountTypes", "AccountType", inverse: "accessKeys"),
          ]),
        .init(
          name: "Account",
          properties: [
            .attribute("active", .boolean), .attribute("authenticated", .boolean),
            .attribute("dataclassProperties", .transformable), .attribute("date", .date),
            .attribute("identifier", .string), .attribute("username", .string),
            .toOne("accountType", "AccountType", inverse: "accounts"),
            .toMany("childAccounts", "Account", inverse: "parentAccount", deleteRule: 2),
            .toMany("customProperties", "AccountProperty", inverse: "owner", deleteRule: 2),
            .toMany("enabledDataclasses", "Dataclass", inverse: "enabledAccounts"),
            .toOne("parentAccount", "Account", inverse: "childAccounts"),
            .toMany("provisionedDataclasses", "Dataclass", inverse: "provisionedAccounts"),
          ]),
        .init(
          name: "AccountProperty",
          properties: [
            .attribute("key", .string), .attribute("value", .transformable),
            .toOne("owner", "Account", inverse: "customProperties"),
          ]),
        .init(
          name: "AccountType",
          properties: [
            .attribute("encryptAccountProperties", .boolean), .attribute("identifier", .string),
            .toMany("accessKeys", "AccessOptionsKey", inverse: "owningAccountTypes"),
            .toMany("accounts", "Account", inverse: "accountType"),
            .toMany("supportedDataclasses", "Dataclass", inverse: "supportedTypes"),
            .toMany("syncableDataclasses", "Dataclass", inverse: "syncableTypes"),
          ]),
        .init(
          name: "Dataclass",
          properties: [
            .attribute("name", .string),
            .toMany("enabledAccounts", "Account", inverse: "enabledDataclasses"),
            .toMany("provisionedAccounts", "Account", inverse: "provisionedDataclasses"),
            .toMany("supportedTypes", "AccountType", inverse: "supportedDataclasses"),
            .toMany("syncableTypes", "AccountType", inverse: "syncableDataclasses"),
          ]),
      ], identifiers: []),
    frameworkVersion: 977, identifiers: [], appKeys: ["ACAccountTypeVersion": 97])
}
