-- A Django 5 project's library app, as `manage.py migrate` writes it.
CREATE TABLE "django_migrations" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app" varchar(255) NOT NULL, "name" varchar(255) NOT NULL, "applied" datetime NOT NULL);
CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "username" varchar(150) NOT NULL UNIQUE);
CREATE TABLE "library_author" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(100) NOT NULL);
CREATE TABLE "library_book" ("id" char(32) NOT NULL PRIMARY KEY, "title" varchar(200) NOT NULL, "published" datetime NULL, "price" decimal NOT NULL, "in_print" bool NOT NULL, "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)), "author_id" integer NOT NULL REFERENCES "library_author" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX "library_book_author_id_9a8b7c6d" ON "library_book" ("author_id");
CREATE INDEX "library_book_title_0f1e2d3c" ON "library_book" ("title");
CREATE TABLE "library_loan" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "book_id" char(32) NOT NULL REFERENCES "library_book" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE VIEW "library_cheap" AS SELECT "title", "price" FROM "library_book" WHERE "price" < 10;
INSERT INTO django_migrations (app, name, applied) VALUES
  ('auth', '0001_initial', '2024-01-01 00:00:00'), ('library', '0001_initial', '2024-01-01 00:00:01'),
  ('library', '0002_book_in_print', '2024-02-01 00:00:00');
INSERT INTO auth_user VALUES (4, 'ann');
INSERT INTO library_author VALUES (1, 'Le Guin'), (2, 'Lem');
DELETE FROM library_author WHERE id = 2;
INSERT INTO library_author VALUES (3, 'Butler');
DELETE FROM library_author WHERE id = 3;
INSERT INTO library_book VALUES
  ('0123456789abcdef0123456789abcdef', 'The Dispossessed', '1974-05-01 00:00:00', 9.5, 1, '{"pages": 341}', 1),
  ('fedcba9876543210fedcba9876543210', 'Rocannon''s World', NULL, 12, 0, '{}', 1);
INSERT INTO library_loan (book_id, user_id) VALUES ('0123456789abcdef0123456789abcdef', 4);
