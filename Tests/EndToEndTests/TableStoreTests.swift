import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Migrating stores that other tools made")
struct TableStoreTests {
  @Test("a store of SQLAlchemy and Alembic keeps everything that no model describes")
  func alembic() async throws {
    let store = try TableStore("alembic")
    let seen = try await store.probe()
    #expect(seen.format == .plain)
    #expect(seen.state == .behind)
    #expect(seen.version == Schema.Version(1, 0, 0))
    #expect(seen.toolVersions == [.alembic("ae1027a6acf")])
    let before = try store.objects()

    let report = try await store.migrate()
    #expect(report.to == Schema.Version(2, 0, 0))
    #expect(report.entities.contains(RunReport.Entity(name: "Note", rowsBefore: 3, rowsAfter: 3)))
    let after = try store.objects()
    let kept = [
      "alembic_version", "note_tag", "audit", "note_fts", "note_fts_data", "note_ai", "note_ad",
      "note_au", "ix_note_pinned", "ix_note_lower_title",
    ]
    for name in kept { #expect(after[name] == before[name], "\(name)") }
    #expect(after["ix_note_created_at"] == nil)
    // SQLite itself rewrites references to a renamed column.
    #expect(after["pinned_note"] == before["pinned_note"]?.replacing("f.name", with: "f.title"))
    #expect(
      after["note"] == """
        CREATE TABLE "note" (
        \tid INTEGER NOT NULL,\u{20}
        \ttitle VARCHAR(200) COLLATE "NOCASE" NOT NULL,\u{20}
        \tbody TEXT NOT NULL,\u{20}
        \tis_pinned BOOLEAN DEFAULT (0) NOT NULL,\u{20}
        \tcreated_at DATETIME NOT NULL,\u{20}
        \tfolder_id INTEGER,\u{20}
        \tlegacy_ref VARCHAR(32) CHECK (length(legacy_ref) < 32), -- not in any model
        \twords INTEGER GENERATED ALWAYS AS (length(body) - length(replace(body, ' ', '')) + 1) VIRTUAL,
          archived_at TEXT,
          rating INTEGER NOT NULL DEFAULT 0,\u{20}
        \tCONSTRAINT pk_note PRIMARY KEY (id),\u{20}
        \tCONSTRAINT ck_note_pinned CHECK (is_pinned IN (0, 1)),\u{20}
        \tCONSTRAINT fk_note_folder_id_folder FOREIGN KEY(folder_id) REFERENCES folder (id) ON DELETE SET NULL
        )
        """)
    #expect(after["folder"]?.contains("UNIQUE") == false)
    #expect(
      try store.strings(
        "SELECT id || '|' || title || '|' || body || '|' || ifnull(legacy_ref, '-') || '|' || ifnull(words, '-') FROM note"
      ) == [
        "1|Groceries|milk and bread|x-1|3", "5|Empty||-|1",
        "9|Report|quarterly report for work|x-9|4",
      ])
    #expect(try store.strings("SELECT colour FROM tag") == ["it's none", "it's none"])
    #expect(try store.strings("SELECT version_num FROM alembic_version") == ["ae1027a6acf"])
    #expect(try store.strings("PRAGMA user_version") == ["2"])

    // Triggers work, and the search index uses the same rowids.
    #expect(
      try store.strings("SELECT rowid FROM note_fts WHERE note_fts MATCH 'quarterly'") == ["9"])
    try store.open { db in
      try db.execute(
        sql: """
          INSERT INTO note (title, body, is_pinned, created_at) VALUES ('New', 'fresh words', 1, '2024-05-05');
          UPDATE folder SET title = 'Flat' WHERE id = 1;
          INSERT INTO note_fts(note_fts) VALUES ('integrity-check');
          """)
    }
    #expect(try store.strings("SELECT rowid FROM note_fts WHERE note_fts MATCH 'fresh'") == ["10"])
    #expect(try store.strings("SELECT what FROM audit") == ["folder Home is Flat"])
    #expect(try store.strings("SELECT folder FROM pinned_note WHERE id = 1") == ["Flat"])
    #expect(throws: (any Error).self) {
      try store.open { try $0.execute(sql: "UPDATE note SET is_pinned = 2") }
    }

    // At home now: the version it declares itself counts, not the tool's.
    let again = try await store.probe()
    #expect(again.state == .current)
    #expect(again.version == Schema.Version(2, 0, 0))
  }

  @Test("a store of Django is migrated with code, its view and JSON checks with it")
  func django() async throws {
    let store = try TableStore("django")
    let seen = try await store.probe()
    #expect(seen.state == .behind)
    #expect(
      seen.toolVersions == [
        .django(app: "auth", "0001_initial"), .django(app: "library", "0002_book_in_print"),
      ])
    let before = try store.objects()
    let report = try await store.migrate()
    #expect(
      report.entities == [
        RunReport.Entity(name: "Author", rowsBefore: 1, rowsAfter: 2),
        RunReport.Entity(name: "Book", rowsBefore: 2, rowsAfter: 2),
      ])
    let after = try store.objects()
    for name in ["django_migrations", "auth_user", "library_author", "library_loan"] {
      #expect(after[name] == before[name], "\(name)")
    }
    #expect(after["library_book_author_id_9a8b7c6d"] == before["library_book_author_id_9a8b7c6d"])
    #expect(
      after["library_book"]
        == #"CREATE TABLE "library_book" ("id" char(32) NOT NULL PRIMARY KEY, "name" varchar(200) NOT NULL, "price" decimal NOT NULL, "in_print" bool NOT NULL, "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)), "author_id" integer REFERENCES "library_author" ("id") DEFERRABLE INITIALLY DEFERRED)"#
    )
    #expect(
      try store.strings(
        "SELECT name || '|' || price || '|' || data || '|' || ifnull(author_id, '-') FROM library_book ORDER BY rowid"
      ) == [#"The Dispossessed|9.5|{"pages":341,"year":1974}|1"#, "Rocannon's World|12|{}|-"])
    #expect(try store.strings("SELECT name FROM library_cheap") == ["The Dispossessed"])
    // Keys of authors that are gone are not given again.
    #expect(try store.strings("SELECT id || name FROM library_author") == ["1Le Guin", "4Unknown"])
    #expect(try store.strings("PRAGMA user_version") == ["10100"])
  }

  @Test("a store of GRDB loses a uniqueness, and renames the source of a generated column")
  func grdb() async throws {
    let store = try TableStore("grdb")
    let seen = try await store.probe()
    #expect(seen.state == .behind)
    #expect(seen.toolVersions == [.grdb("addBonus")])
    let before = try store.objects()
    try await store.migrate()
    let after = try store.objects()
    for name in ["grdb_migrations", "match", "player_on_teamId"] {
      #expect(after[name] == before[name], "\(name)")
    }
    #expect(after["player"]?.contains("UNIQUE") == false)
    #expect(after["player"]?.contains("COLLATE NOCASE") == true)
    #expect(
      try store.strings(
        #"SELECT id || name || points || '|' || "totalScore" || '|' || ifnull(joined, '-') || "teamId" FROM player"#
      ) == ["1Arthur100|105|2023-05-06 07:08:09.123red", "3Barbara1000|1000|-blue"])
    #expect(
      try store.strings("SELECT seq FROM sqlite_sequence WHERE name = 'player'") == ["40"])
    try store.open { db in
      try db.execute(
        sql: """
          PRAGMA foreign_keys = ON;
          INSERT INTO player (name) VALUES ('arthur');
          UPDATE team SET id = 'crimson' WHERE id = 'red';
          DELETE FROM team WHERE id = 'blue';
          """)
    }
    #expect(
      try store.strings(#"SELECT id || ifnull("teamId", '-') FROM player ORDER BY id"#)
        == ["1crimson", "41-"])
    #expect(try store.strings(#"SELECT "playerId" FROM "match""#) == ["1"])
  }

  @Test("a store of Room is matched by its user_version, and its composite keys are followed")
  func room() async throws {
    let store = try TableStore("room")
    let seen = try await store.probe()
    #expect(seen.state == .behind)
    #expect(seen.version == Schema.Version(3, 0, 0))
    #expect(seen.toolVersions == [.room(identityHash: "5f2b7ea3c1d94e0a8b6d7c5f4e3a2b1c")])
    let before = try store.objects()
    try await store.migrate()
    let after = try store.objects()
    for name in ["room_master_table", "android_metadata", "index_meaning_word_lang"] {
      #expect(after[name] == before[name], "\(name)")
    }
    #expect(
      try store.strings(
        "SELECT word || '|' || lang || '|' || gloss || '|' || ifnull(hint, '-') FROM meaning")
        == [
          "Wort|de|word|de: 2", "Wort|de|promise|de: 2", "word|en|Wort|en: 1", "mot|fr|word|-",
        ])
    #expect(
      try store.strings("SELECT text || ifnull(rank, '-') || '|' || added FROM word")
        == ["Wort3|1700000000123", "word1|1700000000456", "mot-|1000"])
    #expect(try store.strings("PRAGMA user_version") == ["4"])
  }

  @Test("a store of a Go service keeps STRICT tables without rowid; its version goes to a table")
  func golang() async throws {
    let store = try TableStore("golang")
    let seen = try await store.probe()
    #expect(seen.state == .behind)
    #expect(seen.toolVersions == [.golangMigrate(20_240_115_093_000)])
    let before = try store.objects()
    try await store.migrate()
    let after = try store.objects()
    for name in [
      "schema_migrations", "version_unique", "reading_by_value", "reading_seen", "place",
    ] {
      #expect(after[name] == before[name], "\(name)")
    }
    #expect(
      after["reading"] == """
        CREATE TABLE "reading" (
            device TEXT NOT NULL REFERENCES device (serial) ON DELETE CASCADE,
            at     INTEGER NOT NULL,
            value  REAL CHECK (value > -273.15), -- degrees Celsius
            PRIMARY KEY (device, at)
        ) STRICT, WITHOUT ROWID
        """)
    #expect(
      try store.strings("SELECT device || '|' || at || '|' || ifnull(value, '-') FROM reading") == [
        "A-1|1700000000|21.5", "A-1|1700000060|-", "B-2|1700000000|-5.0", "C-3|1700000500|1.0",
      ])
    // The app's trigger saw the row that the plan inserted.
    #expect(
      try store.strings("SELECT kind || '|' || seen FROM device WHERE serial = 'C-3'") == [
        "unknown|1700000500"
      ])
    #expect(try store.strings("SELECT id FROM place WHERE min_x >= 5") == ["2"])
    #expect(try store.strings("SELECT version FROM schema_version") == ["2.3.4"])
    #expect(try store.strings("PRAGMA user_version") == ["0"])
    #expect(try await store.probe().state == .current)
  }
}
