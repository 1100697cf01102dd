/* store PATH OPERATION [format=plain|coredata] [to=PATH]
 *
 * The limit for one store. Prints one JSON line: the seconds of the work, its phases, and the peak of the memory.
 *
 *   copy            copy the store to `to`, durable
 *   backup          copy the store into `to` with SQLite's backup API, durable; `to` may exist
 *   check           quick_check, and the fingerprint of each index compared with its table's
 *   integrity       integrity_check
 *   cust_a          what everyone writes: add a column, set it row by row, drop the old column, in one transaction
 *   shadow_c        copy; on the copy and without a journal transform the column with a registered function and rename
 *                   it; make the copy durable, keep the original by a link, rename the copy
 *   shadow_dropcol  the same, but drop a column
 *   shadow_uniq     the same, but delete rows with repeated titles and create a unique index
 */
#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAXIMUM_PHASES = 16, MAXIMUM_INDEXES = 16 };

static struct {
  const char *name;
  double seconds;
} phases[MAXIMUM_PHASES];
static int phase_count;
static double phase_start;

static void end_phase(const char *name)
{
  double now = seconds_now();
  if (phase_count == MAXIMUM_PHASES) fail("there are too many phases");
  phases[phase_count].name = name;
  phases[phase_count++].seconds = now - phase_start;
  phase_start = now;
}

static void run_format(sqlite3 *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void run_format(sqlite3 *store, const char *format, ...)
{
  char sql[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sql, sizeof sql, format, arguments);
  va_end(arguments);
  run_sql(store, sql);
}

/* MARK: The transform */

/* "a b c" becomes "c b a". */
static int reverse_words(const char *text, int length, char *result)
{
  int written = 0, end = length;
  for (int i = length - 1; i >= -1; i--) {
    if (i >= 0 && text[i] != ' ') continue;
    int bytes = end - i - 1;
    memcpy(result + written, text + i + 1, (size_t)bytes);
    written += bytes;
    if (i >= 0) result[written++] = ' ';
    end = i;
  }
  return written;
}

static void transform(sqlite3_context *context, int count, sqlite3_value **values)
{
  (void)count;
  const char *text = (const char *)sqlite3_value_text(values[0]);
  int length = sqlite3_value_bytes(values[0]);
  char *result = sqlite3_malloc(length + 1);
  if (!result) {
    sqlite3_result_error_nomem(context);
    return;
  }
  sqlite3_result_text(context, result, reverse_words(text, length, result), sqlite3_free);
}

static long update_each_row(sqlite3 *store, const struct names *names)
{
  sqlite3_stmt *select = prepare(store, "SELECT %s, %s FROM %s", names->rowid, names->content, names->note);
  sqlite3_stmt *update =
    prepare(store, "UPDATE %s SET %s=? WHERE %s=?", names->note, names->content2, names->rowid);
  static char result[1 << 20];
  long rows = 0;
  for (; sqlite3_step(select) == SQLITE_ROW; rows++) {
    const char *text = (const char *)sqlite3_column_text(select, 1);
    int length = sqlite3_column_bytes(select, 1);
    if ((size_t)length > sizeof result) fail("a text is too long");
    sqlite3_bind_text(update, 1, result, reverse_words(text, length, result), SQLITE_STATIC);
    sqlite3_bind_int64(update, 2, sqlite3_column_int64(select, 0));
    execute(update);
  }
  sqlite3_finalize(select);
  sqlite3_finalize(update);
  return rows;
}

static long rewrite_in_place(const char *path, const struct names *names)
{
  sqlite3 *store = open_store(path);
  run_sql(store, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE");
  run_format(store, "ALTER TABLE %s ADD COLUMN %s TEXT", names->note, names->content2);
  end_phase("add");
  long rows = update_each_row(store, names);
  end_phase("fill");
  run_format(store, "ALTER TABLE %s DROP COLUMN %s", names->note, names->content);
  end_phase("drop");
  run_sql(store, "COMMIT");
  close_store(store);
  end_phase("commit");
  return rows;
}

/* MARK: Duplicates */

struct hash_set {
  uint64_t *slots;
  size_t capacity, count;
};

/* Returns whether the set had the hash already. 0 marks an empty slot. */
static int insert_hash(struct hash_set *set, uint64_t hash)
{
  if (hash == 0) hash = 1;
  if (set->count * 2 >= set->capacity) {
    struct hash_set larger = {NULL, set->capacity ? set->capacity * 2 : 1 << 16, 0};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) fail("cannot allocate memory");
    for (size_t i = 0; i < set->capacity; i++) {
      if (set->slots[i]) insert_hash(&larger, set->slots[i]);
    }
    free(set->slots);
    *set = larger;
  }
  size_t slot = hash & (set->capacity - 1);
  for (; set->slots[slot]; slot = (slot + 1) & (set->capacity - 1)) {
    if (set->slots[slot] == hash) return 1;
  }
  set->slots[slot] = hash;
  set->count++;
  return 0;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, int length)
{
  for (int i = 0; i < length; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

/* Keeps the first note of each title. The keys are read first: deleting moves rows under the cursor. */
static long delete_duplicates(sqlite3 *store, const struct names *names)
{
  sqlite3_stmt *select =
    prepare(store, "SELECT %s, %s FROM %s ORDER BY 1", names->rowid, names->title, names->note);
  struct hash_set titles = {NULL, 0, 0};
  sqlite3_int64 *keys = NULL;
  size_t count = 0, capacity = 0;
  while (sqlite3_step(select) == SQLITE_ROW) {
    const unsigned char *title = sqlite3_column_text(select, 1);
    uint64_t hash = hash_bytes(1469598103934665603u, title, sqlite3_column_bytes(select, 1));
    if (!insert_hash(&titles, hash ^ hash >> 29)) continue;
    if (count == capacity) {
      capacity = capacity ? capacity * 2 : 1024;
      keys = realloc(keys, capacity * sizeof *keys);
      if (!keys) fail("cannot allocate memory");
    }
    keys[count++] = sqlite3_column_int64(select, 0);
  }
  sqlite3_finalize(select);
  sqlite3_stmt *delete = prepare(store, "DELETE FROM %s WHERE %s=?", names->note, names->rowid);
  for (size_t i = 0; i < count; i++) {
    sqlite3_bind_int64(delete, 1, keys[i]);
    execute(delete);
  }
  sqlite3_finalize(delete);
  free(titles.slots);
  free(keys);
  return (long)count;
}

/* MARK: Work on a copy */

static long change_copy(const char *path, const char *operation, const struct names *names)
{
  char copy[4096], backup[4096];
  snprintf(copy, sizeof copy, "%s.shadow", path);
  snprintf(backup, sizeof backup, "%s.bak", path);
  unlink(copy);
  unlink(backup);
  copy_file(path, copy, 0);
  end_phase("copy");

  sqlite3 *store = open_store(copy);
  run_sql(
    store, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA foreign_keys=ON");
  sqlite3_create_function(store, "transform", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, transform, NULL, NULL);
  run_sql(store, "BEGIN IMMEDIATE");
  long rows = 0;
  if (!strcmp(operation, "shadow_c")) {
    run_format(store, "UPDATE %s SET %s=transform(%s)", names->note, names->content, names->content);
    rows = sqlite3_changes(store);
    run_format(store, "ALTER TABLE %s RENAME COLUMN %s TO %s", names->note, names->content, names->content2);
  } else if (!strcmp(operation, "shadow_dropcol")) {
    run_format(store, "ALTER TABLE %s DROP COLUMN %s", names->note, names->created);
  } else {
    rows = delete_duplicates(store, names);
    run_format(store, "CREATE UNIQUE INDEX note_title ON %s(%s)", names->note, names->title);
  }
  run_sql(store, "COMMIT");
  close_store(store);
  end_phase("change");

  synchronize_file(copy);
  end_phase("synchronize");
  if (link(path, backup) || rename(copy, path)) fail("cannot replace the store");
  synchronize_folder_of(path);
  end_phase("rename");
  return rows;
}

/* MARK: Checks */

static void check_answer(const char *path, const char *pragma)
{
  sqlite3 *store = open_store(path);
  sqlite3_stmt *statement = prepare(store, "PRAGMA %s", pragma);
  errno = 0;
  if (sqlite3_step(statement) != SQLITE_ROW) fail(pragma);
  const char *answer = (const char *)sqlite3_column_text(statement, 0);
  if (!answer || strcmp(answer, "ok")) fail("the store is damaged");
  sqlite3_finalize(statement);
  close_store(store);
  end_phase(pragma);
}

static uint64_t hash_value(uint64_t hash, sqlite3_stmt *statement, int column)
{
  switch (sqlite3_column_type(statement, column)) {
  case SQLITE_INTEGER:
    return hash ^ (uint64_t)sqlite3_column_int64(statement, column) * 0xC2B2AE3D27D4EB4F;
  case SQLITE_NULL: return hash ^ 0x165667B19E3779F9;
  default: {
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    return hash_bytes(hash, bytes, sqlite3_column_bytes(statement, column));
  }
  }
}

/* The columns of one index. */
struct index {
  char name[200], columns[1000];
  int column_count;
};

static int read_indexes(sqlite3 *store, const char *table, struct index *indexes)
{
  sqlite3_stmt *select = prepare(
    store,
    "SELECT list.name, group_concat('\"' || info.name || '\"'), count(*)"
    " FROM pragma_index_list('%s') AS list, pragma_index_info(list.name) AS info"
    " WHERE list.partial = 0 GROUP BY list.name HAVING count(info.name) = count(*)",
    table);
  int count = 0;
  while (sqlite3_step(select) == SQLITE_ROW) {
    if (count == MAXIMUM_INDEXES) fail("a table has too many indexes");
    struct index *index = &indexes[count++];
    snprintf(index->name, sizeof index->name, "%s", sqlite3_column_text(select, 0));
    snprintf(index->columns, sizeof index->columns, "%s", sqlite3_column_text(select, 1));
    index->column_count = sqlite3_column_int(select, 2);
  }
  sqlite3_finalize(select);
  return count;
}

/* Adds the hashes of each row's key and indexed values. A sum does not depend on the order of the rows, so the scan of
 * a table and the scan of its index must have the same sums. */
static void add_hashes(sqlite3_stmt *scan, const struct index *indexes, int count, uint64_t *sums)
{
  while (sqlite3_step(scan) == SQLITE_ROW) {
    uint64_t key = (uint64_t)sqlite3_column_int64(scan, 0) * 0x9E3779B97F4A7C15;
    int column = 1;
    for (int i = 0; i < count; i++) {
      uint64_t hash = key;
      for (int j = 0; j < indexes[i].column_count; j++) hash = hash_value(hash, scan, column++);
      hash ^= hash >> 32;
      hash *= 0xD6E8FEB86659FD93;
      hash ^= hash >> 29;
      sums[i] += hash;
    }
  }
  sqlite3_finalize(scan);
}

static void compare_indexes(sqlite3 *store, const char *table)
{
  struct index indexes[MAXIMUM_INDEXES];
  int count = read_indexes(store, table, indexes);
  if (count == 0) return;
  char columns[sizeof indexes[0].columns * 3] = "";
  for (int i = 0; i < count; i++) {
    size_t length = strlen(columns);
    snprintf(columns + length, sizeof columns - length, ", %s", indexes[i].columns);
  }
  uint64_t of_table[MAXIMUM_INDEXES] = {0};
  add_hashes(prepare(store, "SELECT rowid%s FROM \"%s\" NOT INDEXED", columns, table), indexes, count, of_table);
  for (int i = 0; i < count; i++) {
    uint64_t of_index = 0;
    sqlite3_stmt *scan = prepare(
      store, "SELECT rowid, %s FROM \"%s\" INDEXED BY \"%s\" ORDER BY %s", indexes[i].columns, table, indexes[i].name,
      indexes[i].columns);
    add_hashes(scan, &indexes[i], 1, &of_index);
    errno = 0;
    if (of_index != of_table[i]) fail("an index does not match its table");
  }
}

/* Tables without rowid are their own index. */
static void compare_all_indexes(const char *path)
{
  sqlite3 *store = open_store(path);
  sqlite3_stmt *tables =
    prepare(store, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0");
  while (sqlite3_step(tables) == SQLITE_ROW) compare_indexes(store, (const char *)sqlite3_column_text(tables, 0));
  sqlite3_finalize(tables);
  close_store(store);
  end_phase("fingerprints");
}

/* MARK: Copies */

static void back_up(const char *from, const char *to)
{
  sqlite3 *source = open_store(from), *target = open_store(to);
  run_sql(target, "PRAGMA synchronous=FULL");
  sqlite3_backup *backup = sqlite3_backup_init(target, "main", source, "main");
  errno = 0;
  if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE || sqlite3_backup_finish(backup)) {
    fail(sqlite3_errmsg(target));
  }
  close_store(source);
  close_store(target);
  end_phase("backup");
}

int main(int count, char **arguments)
{
  if (count < 3) {
    fputs("usage: store PATH OPERATION [format=plain|coredata] [to=PATH]\n", stderr);
    return 2;
  }
  const char *path = arguments[1], *operation = arguments[2];
  const struct names *names = names_of(option(count, arguments, "format", "plain"));
  const char *to = option(count, arguments, "to", "");
  long rows = 0;
  double start = phase_start = seconds_now();
  if (!strcmp(operation, "copy")) {
    copy_file(path, to, 1);
  } else if (!strcmp(operation, "backup")) {
    back_up(path, to);
  } else if (!strcmp(operation, "check")) {
    check_answer(path, "quick_check");
    compare_all_indexes(path);
  } else if (!strcmp(operation, "integrity")) {
    check_answer(path, "integrity_check");
  } else if (!strcmp(operation, "cust_a")) {
    rows = rewrite_in_place(path, names);
  } else if (!strncmp(operation, "shadow_", 7)) {
    rows = change_copy(path, operation, names);
  } else {
    fail("unknown operation");
  }
  printf(
    "{\"operation\":\"%s\",\"s\":%.4f,\"rows\":%ld,\"rss_mb\":%.1f,\"phases\":{", operation, seconds_now() - start,
    rows, peak_memory_mb());
  for (int i = 0; i < phase_count; i++) {
    printf("%s\"%s\":%.4f", i ? "," : "", phases[i].name, phases[i].seconds);
  }
  puts("}}");
  return 0;
}
