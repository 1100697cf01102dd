-- An Android app's dictionary on Room, version 3: back quotes, a composite key, the identity hash.
CREATE TABLE android_metadata (locale TEXT);
CREATE TABLE room_master_table (id INTEGER PRIMARY KEY,identity_hash TEXT);
CREATE TABLE `word` (`text` TEXT NOT NULL, `lang` TEXT NOT NULL, `rank` INTEGER NOT NULL DEFAULT 0, `added` INTEGER NOT NULL, PRIMARY KEY(`text`, `lang`));
CREATE TABLE `meaning` (`id` INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, `word` TEXT NOT NULL, `lang` TEXT NOT NULL, `gloss` TEXT NOT NULL, FOREIGN KEY(`word`, `lang`) REFERENCES `word`(`text`, `lang`) ON UPDATE NO ACTION ON DELETE CASCADE );
CREATE INDEX `index_meaning_word_lang` ON `meaning` (`word`, `lang`);
INSERT INTO android_metadata VALUES ('en_US');
INSERT INTO room_master_table (id,identity_hash) VALUES(42, '5f2b7ea3c1d94e0a8b6d7c5f4e3a2b1c');
INSERT INTO word VALUES ('Wort', 'de', 3, 1700000000123), ('word', 'en', 1, 1700000000456);
INSERT INTO meaning (word, lang, gloss) VALUES ('Wort', 'de', 'word'), ('Wort', 'de', 'promise'), ('word', 'en', 'Wort');
PRAGMA user_version = 3;
