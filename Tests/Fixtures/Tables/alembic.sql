-- A notes service on SQLAlchemy 2 with Alembic: constraints by a naming convention, written by its CREATE TABLE compiler.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE folder (
	id INTEGER NOT NULL, 
	name VARCHAR(120) NOT NULL, 
	CONSTRAINT pk_folder PRIMARY KEY (id), 
	CONSTRAINT uq_folder_name UNIQUE (name)
);
CREATE TABLE note (
	id INTEGER NOT NULL, 
	title VARCHAR(200) COLLATE "NOCASE" NOT NULL, 
	body TEXT, 
	is_pinned BOOLEAN DEFAULT (0) NOT NULL, 
	created_at DATETIME NOT NULL, 
	folder_id INTEGER, 
	legacy_ref VARCHAR(32) CHECK (length(legacy_ref) < 32), -- not in any model
	words INTEGER GENERATED ALWAYS AS (length(body) - length(replace(body, ' ', '')) + 1) VIRTUAL, 
	CONSTRAINT pk_note PRIMARY KEY (id), 
	CONSTRAINT ck_note_pinned CHECK (is_pinned IN (0, 1)), 
	CONSTRAINT fk_note_folder_id_folder FOREIGN KEY(folder_id) REFERENCES folder (id) ON DELETE SET NULL
);
CREATE INDEX ix_note_created_at ON note (created_at);
CREATE INDEX ix_note_pinned ON note (created_at DESC) WHERE is_pinned = 1;
CREATE INDEX ix_note_lower_title ON note (lower(title));
CREATE TABLE tag (
	id INTEGER NOT NULL, 
	label VARCHAR(40) NOT NULL, 
	CONSTRAINT pk_tag PRIMARY KEY (id)
);
CREATE TABLE note_tag (
	note_id INTEGER NOT NULL, 
	tag_id INTEGER NOT NULL, 
	CONSTRAINT pk_note_tag PRIMARY KEY (note_id, tag_id), 
	CONSTRAINT fk_note_tag_note_id_note FOREIGN KEY(note_id) REFERENCES note (id) ON DELETE CASCADE, 
	CONSTRAINT fk_note_tag_tag_id_tag FOREIGN KEY(tag_id) REFERENCES tag (id) ON DELETE CASCADE
);
CREATE TABLE audit (at TEXT, what TEXT);
CREATE VIRTUAL TABLE note_fts USING fts5(title, body, content='note', content_rowid='id');
CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN
  INSERT INTO note_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
END;
CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN
  INSERT INTO note_fts(note_fts, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
END;
CREATE TRIGGER note_au AFTER UPDATE ON note BEGIN
  INSERT INTO note_fts(note_fts, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
  INSERT INTO note_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
END;
CREATE TRIGGER folder_audit AFTER UPDATE OF name ON folder BEGIN
  INSERT INTO audit VALUES ('now', 'folder ' || old.name || ' is ' || new.name);
END;
CREATE VIEW pinned_note AS
  SELECT n.id, n.title, f.name AS folder FROM note AS n LEFT JOIN folder AS f ON f.id = n.folder_id
  WHERE n.is_pinned = 1;
INSERT INTO alembic_version VALUES ('ae1027a6acf');
INSERT INTO folder VALUES (1, 'Home'), (7, 'Work');
INSERT INTO note (id, title, body, is_pinned, created_at, folder_id, legacy_ref) VALUES
  (1, 'Groceries', 'milk and bread', 1, '2024-01-02 03:04:05.678901', 1, 'x-1'),
  (5, 'Empty', NULL, 0, '2024-02-03 00:00:00.000000', NULL, NULL),
  (9, 'Report', 'quarterly report for work', 0, '2024-03-04 12:30:00.000000', 7, 'x-9');
INSERT INTO tag VALUES (1, 'food'), (2, 'urgent');
INSERT INTO note_tag VALUES (1, 1), (1, 2), (9, 2);
