-- A game on GRDB's DatabaseMigrator: quoted camel-case names, text keys, a generated column.
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
CREATE TABLE "team" ("id" TEXT PRIMARY KEY NOT NULL, "name" TEXT NOT NULL);
CREATE TABLE "player" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "name" TEXT NOT NULL UNIQUE ON CONFLICT ABORT COLLATE NOCASE, "score" INTEGER NOT NULL DEFAULT 0, "bonus" INTEGER NOT NULL DEFAULT 0, "totalScore" INTEGER NOT NULL GENERATED ALWAYS AS (score + bonus) VIRTUAL, "joined" DATETIME, "teamId" TEXT REFERENCES "team"("id") ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX "player_on_teamId" ON "player"("teamId");
CREATE TABLE "match" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "playerId" INTEGER NOT NULL REFERENCES "player"("id") ON DELETE CASCADE);
INSERT INTO grdb_migrations VALUES ('createTeam'), ('createPlayer'), ('addBonus');
INSERT INTO team VALUES ('red', 'The Reds'), ('blue', 'The Blues');
INSERT INTO player (id, name, score, bonus, joined, teamId) VALUES
  (1, 'Arthur', 100, 5, '2023-05-06 07:08:09.123', 'red'), (3, 'Barbara', 1000, 0, NULL, 'blue'),
  (40, 'Gone', 1, 1, NULL, NULL);
DELETE FROM player WHERE id = 40;
INSERT INTO "match" (playerId) VALUES (1), (3), (3);
