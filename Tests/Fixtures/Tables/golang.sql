-- A Go service that collects readings, with golang-migrate: STRICT tables without rowid, an R*Tree.
CREATE TABLE schema_migrations (version uint64,dirty bool);
CREATE UNIQUE INDEX version_unique ON schema_migrations (version);
CREATE TABLE device (
    serial TEXT PRIMARY KEY NOT NULL,
    model  TEXT NOT NULL DEFAULT 'unknown',
    seen   INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE reading (
    device TEXT NOT NULL REFERENCES device (serial) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    value  REAL NOT NULL CHECK (value > -273.15), -- degrees Celsius
    PRIMARY KEY (device, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX reading_by_value ON reading (value) WHERE value > 100;
CREATE VIRTUAL TABLE place USING rtree(id, min_x, max_x, min_y, max_y);
CREATE TRIGGER reading_seen AFTER INSERT ON reading BEGIN
  UPDATE device SET seen = new.at WHERE serial = new.device;
END;
INSERT INTO schema_migrations VALUES (20240115093000, 0);
INSERT INTO device (serial, model) VALUES ('A-1', 'probe'), ('B-2', 'probe');
INSERT INTO reading VALUES ('A-1', 1700000000, 21.5), ('A-1', 1700000060, 120), ('B-2', 1700000000, -5);
INSERT INTO place VALUES (1, 0, 1, 0, 1), (2, 5, 6, 5, 6);
