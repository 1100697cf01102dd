/* gen PATH NOTES [seed=1] [page_size=4096] [journal=delete|wal] [characters=200] [stores=N]
 *
 * Creates a plain store with NOTES notes at PATH. With stores=N it creates N stores with the seeds 1 to N in folders of
 * 100: PATH/d000/s000000.db and so on. Equal arguments give equal stores.
 *
 * About one title in a hundred occurs twice. Each note has a folder and up to two tags. */
#include "limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STORES_PER_FOLDER = 100, MAXIMUM_TAGS = 500 };

static const char *const words[] = {
  "alpha", "river", "stone", "cloud", "migrate", "store", "note",  "the",   "a",     "of",
  "quick", "brown", "fox",   "jumps", "über",    "café",  "日本",  "data",  "schema", "row",
  "version", "lazy", "dog",  "hello", "world",   "swift", "linux", "table", "index", "page"};
enum { WORDS = sizeof words / sizeof *words };

static const char schema[] =
  "CREATE TABLE folder(id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
  "CREATE TABLE note(id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, content TEXT NOT NULL,"
  " created REAL NOT NULL, folder_id INTEGER REFERENCES folder(id));"
  "CREATE INDEX note_folder ON note(folder_id);"
  "CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
  "CREATE TABLE note_tag(note_id INTEGER NOT NULL REFERENCES note(id) ON DELETE CASCADE,"
  " tag_id INTEGER NOT NULL REFERENCES tag(id) ON DELETE CASCADE, PRIMARY KEY(note_id,tag_id)) WITHOUT ROWID;"
  "CREATE TABLE store_meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
  "INSERT INTO store_meta VALUES('schema_version','1'),('model_hash','a1b2c3d4e5f60718293a4b5c6d7e8f90');"
  "PRAGMA user_version=1;PRAGMA application_id=1298755444;";

/* xorshift128+ */
static uint64_t state[2];

static uint64_t next_random(void)
{
  uint64_t first = state[0], second = state[1];
  state[0] = second;
  first ^= first << 23;
  state[1] = first ^ second ^ (first >> 17) ^ (second >> 26);
  return state[1] + second;
}

static void seed_random(uint64_t seed)
{
  state[0] = 0x9E3779B97F4A7C15;
  state[1] = seed * 7919 + 1;
  for (int i = 0; i < 20; i++) next_random();
}

/* Fills `text` with words until it has `length` bytes or a few more, and returns how many it has. */
static int write_words(char *text, int length)
{
  int written = 0;
  while (written < length) {
    const char *word = words[next_random() % WORDS];
    int bytes = (int)strlen(word);
    memcpy(text + written, word, (size_t)bytes);
    written += bytes;
    text[written++] = ' ';
  }
  return written - 1;
}

static void insert_named_rows(sqlite3 *store, const char *table, int count)
{
  sqlite3_stmt *insert = prepare(store, "INSERT INTO %s VALUES(?,?)", table);
  for (int i = 1; i <= count; i++) {
    char name[64];
    int length = snprintf(name, sizeof name, "%s %d", table, i);
    sqlite3_bind_int(insert, 1, i);
    sqlite3_bind_text(insert, 2, name, length, SQLITE_STATIC);
    execute(insert);
  }
  sqlite3_finalize(insert);
}

static void insert_notes(sqlite3 *store, long notes, int folders, int tags, int characters)
{
  sqlite3_stmt *insert = prepare(store, "INSERT INTO note VALUES(?,?,?,?,?,?)");
  sqlite3_stmt *insert_tag = prepare(store, "INSERT OR IGNORE INTO note_tag VALUES(?,?)");
  char *content = malloc((size_t)characters + 4096);
  if (!content) fail("cannot allocate memory");
  for (long i = 1; i <= notes; i++) {
    uint64_t high = next_random(), low = next_random();
    char uid[64], title[128];
    int uid_length = snprintf(
      uid, sizeof uid, "%08X-%04X-%04X-%04X-%012llX", (unsigned)(high >> 32), (unsigned)(high >> 16) & 0xffff,
      (unsigned)high & 0xffff, (unsigned)(low >> 48), (unsigned long long)low & 0xffffffffffff);
    long source = next_random() % 100 == 0 && i > 100 ? (long)(next_random() % (uint64_t)i) + 1 : i;
    int title_length = snprintf(
      title, sizeof title, "%s %s %08lu", words[source * 7 % WORDS], words[source * 13 % WORDS],
      (unsigned long)(uint32_t)(source * 2654435761u));
    int content_length = write_words(content, characters - 10 + (int)(next_random() % 20));
    sqlite3_bind_int64(insert, 1, i);
    sqlite3_bind_text(insert, 2, uid, uid_length, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, title, title_length, SQLITE_STATIC);
    sqlite3_bind_text(insert, 4, content, content_length, SQLITE_STATIC);
    sqlite3_bind_double(insert, 5, 7e8 + (double)(next_random() % 100000000) / 1000.0);
    sqlite3_bind_int64(insert, 6, (sqlite3_int64)(next_random() % (uint64_t)folders) + 1);
    execute(insert);
    for (int j = 0; j < 2; j++) {
      sqlite3_bind_int64(insert_tag, 1, i);
      sqlite3_bind_int64(insert_tag, 2, (sqlite3_int64)(next_random() % (uint64_t)tags) + 1);
      execute(insert_tag);
    }
  }
  free(content);
  sqlite3_finalize(insert);
  sqlite3_finalize(insert_tag);
}

static void make_store(
  const char *path, long notes, uint64_t seed, int page_size, const char *journal, int characters)
{
  seed_random(seed);
  unlink(path);
  sqlite3 *store = open_store(path);
  char settings[200];
  snprintf(
    settings, sizeof settings, "PRAGMA page_size=%d;PRAGMA synchronous=OFF;PRAGMA cache_size=-1000000;", page_size);
  run_sql(store, settings);
  int is_wal = !strcmp(journal, "wal");
  if (!is_wal) run_sql(store, "PRAGMA journal_mode=OFF");
  run_sql(store, "BEGIN");
  run_sql(store, schema);
  int folders = (int)(notes / 100) + 1;
  int tags = notes / 200 + 10 > MAXIMUM_TAGS ? MAXIMUM_TAGS : (int)(notes / 200) + 10;
  insert_named_rows(store, "folder", folders);
  insert_named_rows(store, "tag", tags);
  insert_notes(store, notes, folders, tags, characters);
  run_sql(store, "COMMIT");
  if (is_wal) run_sql(store, "PRAGMA journal_mode=WAL");
  close_store(store);
}

static void make_folder(const char *path)
{
  if (mkdir(path, 0755) && errno != EEXIST) fail(path);
}

int main(int count, char **arguments)
{
  if (count < 3) {
    fputs(
      "usage: gen PATH NOTES [seed=1] [page_size=4096] [journal=delete|wal] [characters=200] [stores=N]\n", stderr);
    return 2;
  }
  const char *path = arguments[1];
  long notes = atol(arguments[2]);
  uint64_t seed = strtoull(option(count, arguments, "seed", "1"), NULL, 10);
  int page_size = atoi(option(count, arguments, "page_size", "4096"));
  const char *journal = option(count, arguments, "journal", "delete");
  int characters = atoi(option(count, arguments, "characters", "200"));
  int stores = atoi(option(count, arguments, "stores", "0"));
  if (stores == 0) {
    make_store(path, notes, seed, page_size, journal, characters);
    return 0;
  }
  make_folder(path);
  for (int i = 0; i < stores; i++) {
    char name[4096];
    snprintf(name, sizeof name, "%s/d%03d", path, i / STORES_PER_FOLDER);
    if (i % STORES_PER_FOLDER == 0) make_folder(name);
    snprintf(name, sizeof name, "%s/d%03d/s%06d.db", path, i / STORES_PER_FOLDER, i);
    make_store(name, notes, (uint64_t)i + 1, page_size, journal, characters);
  }
  return 0;
}
