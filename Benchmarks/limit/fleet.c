/* fleet FOLDER OPERATION [format=plain|coredata] [workers=1] [batch=256] [state=FOLDER]
 *
 * The limit for many small stores: all files below FOLDER whose names end in ".db". Prints one JSON line: the seconds
 * without the search for the stores, and their number.
 *
 *   shadow_batch  clone and change a batch of stores, make the batch durable with one syncfs, keep each original by a
 *                 link, rename each clone, and make the folders durable
 *   quick_check   run quick_check in each store
 *   detect_meta   open each store and read the version in its metadata
 *   write_back    what a run does to be safe, store by store: phases, lock, backup, a check before and after the change
 *                 in one transaction, manifest and ledger. No row of the benchmarks: it shows what these steps cost in C
 *   exchange      the same with a clone, which takes the store's place; the store's file becomes the backup
 *
 * The last two need a state folder, which they fill.
 */
#define _GNU_SOURCE
#include "limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAXIMUM_WORKERS = 64 };

static char **stores;
static int store_count, store_capacity;

static const struct names *names;
static int is_core_data;
static int batch_size;
static atomic_int next_store;
static const char *state_folder;
static int ledger;

static void add_store(const char *path)
{
  if (store_count == store_capacity) {
    store_capacity = store_capacity ? store_capacity * 2 : 1024;
    stores = realloc(stores, (size_t)store_capacity * sizeof *stores);
    if (!stores) fail("cannot allocate memory");
  }
  stores[store_count++] = strdup(path);
}

static void find_stores(const char *folder)
{
  DIR *entries = opendir(folder);
  if (!entries) fail(folder);
  for (struct dirent *entry; (entry = readdir(entries));) {
    char path[4096];
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (entry->d_type == DT_DIR) find_stores(path);
    else if (length > 3 && !strcmp(entry->d_name + length - 3, ".db")) add_store(path);
  }
  closedir(entries);
}

static int compare_names(const void *left, const void *right)
{
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Leaves the transaction open. */
static void begin_with_column(sqlite3 *store)
{
  char sql[300];
  snprintf(
    sql, sizeof sql, "BEGIN IMMEDIATE; ALTER TABLE %s ADD COLUMN %s INTEGER; PRAGMA user_version=2", names->note,
    names->pinned);
  run_sql(store, sql);
}

static void add_column(const char *path)
{
  sqlite3 *store = open_store(path);
  run_sql(store, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF");
  begin_with_column(store);
  run_sql(store, "COMMIT");
  close_store(store);
}

static void synchronize_file_system_of(const char *path)
{
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || syncfs(file)) fail("cannot make a batch durable");
  close(file);
}

static void change_batch(int first, int end)
{
  char clone[4200], backup[4200];
  for (int i = first; i < end; i++) {
    snprintf(clone, sizeof clone, "%s.shadow", stores[i]);
    copy_file(stores[i], clone, 0);
    add_column(clone);
  }
  synchronize_file_system_of(stores[first]);
  for (int i = first; i < end; i++) {
    snprintf(clone, sizeof clone, "%s.shadow", stores[i]);
    snprintf(backup, sizeof backup, "%s.bak", stores[i]);
    if (link(stores[i], backup) || rename(clone, stores[i])) fail("cannot replace a store");
  }
  synchronize_file_system_of(stores[first]);
}

static sqlite3 *open_to_read(const char *path)
{
  sqlite3 *store;
  if (sqlite3_open_v2(path, &store, SQLITE_OPEN_READONLY, NULL)) fail(path);
  return store;
}

static void read_version(const char *path)
{
  sqlite3 *store = open_to_read(path);
  sqlite3_stmt *select = prepare(
    store, "%s",
    is_core_data ? "SELECT Z_UUID, Z_PLIST FROM Z_METADATA" :
                   "SELECT value FROM store_meta WHERE key = 'schema_version'");
  errno = 0;
  if (sqlite3_step(select) != SQLITE_ROW || !sqlite3_column_text(select, 0)) fail("a store has no version");
  sqlite3_finalize(select);
  close_store(store);
}

static void require_sound(sqlite3 *store)
{
  sqlite3_stmt *check = prepare(store, "PRAGMA quick_check(1)");
  errno = 0;
  if (sqlite3_step(check) != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(check, 0), "ok")) {
    fail("a store is damaged");
  }
  sqlite3_finalize(check);
}

static void quick_check(const char *path)
{
  sqlite3 *store = open_to_read(path);
  require_sound(store);
  close_store(store);
}

/* The steps of a run. Lines have the length of Instar's, and no content. */

enum { PHASE_BYTES = 700, MANIFEST_BYTES = 700, REPORT_BYTES = 1000 };

struct run {
  char phases[4200], folder[4200], copy[4400], backup[4400], manifest[4400];
};

static void write_line(int file, int bytes)
{
  char line[REPORT_BYTES];
  memset(line, 'x', sizeof line);
  line[bytes - 1] = '\n';
  if (write(file, line, (size_t)bytes) != bytes) fail("cannot write a line");
}

static int create(const char *path)
{
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) fail(path);
  return file;
}

static void read_rows(sqlite3 *store, const char *sql)
{
  sqlite3_stmt *select = prepare(store, "%s", sql);
  int result;
  while ((result = sqlite3_step(select)) == SQLITE_ROW) continue;
  errno = 0;
  if (result != SQLITE_DONE) fail(sql);
  sqlite3_finalize(select);
}

static void examine(sqlite3 *store)
{
  char sql[100];
  require_sound(store);
  read_rows(store, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema");
  snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", names->note);
  read_rows(store, sql);
}

/* Returns a store in memory with the bytes of a file. */
static sqlite3 *load(int file)
{
  struct stat status;
  if (fstat(file, &status)) fail("cannot read a size");
  unsigned char *bytes = sqlite3_malloc64((sqlite3_uint64)status.st_size);
  if (!bytes || pread(file, bytes, (size_t)status.st_size, 0) != status.st_size) fail("cannot read a store");
  sqlite3 *clone = open_store(":memory:");
  unsigned flags = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE;
  if (sqlite3_deserialize(clone, "main", bytes, status.st_size, status.st_size, flags)) fail("cannot load a store");
  return clone;
}

static void exchange_clone(sqlite3 *clone, const char *store, const struct run *run)
{
  sqlite3_int64 bytes;
  unsigned char *content = sqlite3_serialize(clone, "main", &bytes, SQLITE_SERIALIZE_NOCOPY);
  int file = create(run->copy);
  if (!content || write(file, content, (size_t)bytes) != bytes || fdatasync(file)) fail("cannot write a clone");
  if (fcntl(file, F_SETLEASE, F_WRLCK)) fail("cannot lease a clone");
  if (renameat2(AT_FDCWD, run->copy, AT_FDCWD, store, RENAME_EXCHANGE)) fail("cannot exchange a store");
  if (fcntl(file, F_GETLEASE) != F_WRLCK) fail("somebody opened a store");
  if (rename(run->copy, run->backup)) fail("cannot keep a backup");
  synchronize_folder_of(store);
  synchronize_folder_of(run->backup);
  close(file);
}

static void name_files(struct run *run, const char *store, int number)
{
  const char *name = strrchr(store, '/') + 1;
  snprintf(run->phases, sizeof run->phases, "%s/phases/%d.json", state_folder, number);
  snprintf(run->folder, sizeof run->folder, "%.*s.instar", (int)(name - store), store);
  snprintf(run->copy, sizeof run->copy, "%s/%s.copy", run->folder, name);
  snprintf(run->backup, sizeof run->backup, "%s/%s.backup", run->folder, name);
  snprintf(run->manifest, sizeof run->manifest, "%s/%s.json", run->folder, name);
  if (mkdir(run->folder, 0700) && errno != EEXIST) fail(run->folder);
}

static void run_steps(const char *path, int number, int exchanges)
{
  struct run run;
  name_files(&run, path, number);
  int phases = create(run.phases);
  write_line(phases, PHASE_BYTES);
  if (fdatasync(phases)) fail("cannot make a phase durable");
  synchronize_folder_of(run.phases);

  sqlite3 *store = open_store(path);
  run_sql(store, "PRAGMA synchronous=FULL; BEGIN EXCLUSIVE; PRAGMA locking_mode=EXCLUSIVE; COMMIT");
  /* Not closed before the end: closing any descriptor of the store ends SQLite's lock. */
  int original = open(path, O_RDONLY | O_CLOEXEC);
  if (original < 0) fail("cannot open a store");
  if (!exchanges) {
    copy_open_file(original, run.copy, 0);
    synchronize_file(run.copy);
  }
  sqlite3 *target = exchanges ? load(original) : store;
  examine(target);
  begin_with_column(target);
  examine(target);
  if (!exchanges) {
    if (rename(run.copy, run.backup)) fail("cannot keep a backup");
    synchronize_folder_of(run.backup);
  }
  write_line(phases, PHASE_BYTES);
  if (fdatasync(phases)) fail("cannot make a phase durable");
  run_sql(target, "COMMIT");
  if (exchanges) {
    exchange_clone(target, path, &run);
    close_store(target);
  } else {
    read_rows(store, "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema");
  }
  close_store(store);
  close(original);
  int manifest = create(run.manifest);
  write_line(manifest, MANIFEST_BYTES);
  close(manifest);
  write_line(ledger, REPORT_BYTES);
  if (fdatasync(ledger)) fail("cannot make the ledger durable");
  close(phases);
  unlink(run.phases);
}

static void make_state_folder(void)
{
  char path[4200];
  snprintf(path, sizeof path, "%s/phases", state_folder);
  if (mkdir(state_folder, 0700) || mkdir(path, 0700)) fail(state_folder);
  snprintf(path, sizeof path, "%s/ledger.jsonl", state_folder);
  ledger = create(path);
}

static void *work(void *operation)
{
  for (;;) {
    int first = atomic_fetch_add(&next_store, batch_size);
    if (first >= store_count) return NULL;
    int end = first + batch_size > store_count ? store_count : first + batch_size;
    if (!strcmp(operation, "shadow_batch")) {
      change_batch(first, end);
      continue;
    }
    if (state_folder) {
      for (int i = first; i < end; i++) run_steps(stores[i], i, !strcmp(operation, "exchange"));
      continue;
    }
    void (*visit)(const char *) = !strcmp(operation, "quick_check") ? quick_check : read_version;
    for (int i = first; i < end; i++) visit(stores[i]);
  }
}

int main(int count, char **arguments)
{
  if (count < 3) {
    fputs("usage: fleet FOLDER OPERATION [format=plain|coredata] [workers=1] [batch=256] [state=FOLDER]\n", stderr);
    return 2;
  }
  const char *folder = arguments[1];
  char *operation = arguments[2];
  int runs_steps = !strcmp(operation, "write_back") || !strcmp(operation, "exchange");
  if (!runs_steps && strcmp(operation, "shadow_batch") && strcmp(operation, "quick_check")
      && strcmp(operation, "detect_meta")) {
    fail("unknown operation");
  }
  state_folder = runs_steps ? option(count, arguments, "state", NULL) : NULL;
  if (runs_steps && !state_folder) fail("this operation needs state=FOLDER");
  if (state_folder) make_state_folder();
  const char *format = option(count, arguments, "format", "plain");
  names = names_of(format);
  is_core_data = !strcmp(format, "coredata");
  batch_size = atoi(option(count, arguments, "batch", "256"));
  int workers = atoi(option(count, arguments, "workers", "1"));
  if (batch_size < 1 || workers < 1 || workers > MAXIMUM_WORKERS) fail("a number is out of range");

  /* The statistics share one lock, and two workers are then hardly faster than one. */
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  find_stores(folder);
  qsort(stores, (size_t)store_count, sizeof *stores, compare_names);
  pthread_t threads[MAXIMUM_WORKERS];
  double start = seconds_now();
  for (int i = 1; i < workers; i++) {
    if (pthread_create(&threads[i], NULL, work, operation)) fail("cannot start a worker");
  }
  work(operation);
  for (int i = 1; i < workers; i++) pthread_join(threads[i], NULL);
  printf(
    "{\"operation\":\"%s\",\"s\":%.4f,\"stores\":%d,\"rss_mb\":%.1f}\n", operation, seconds_now() - start, store_count,
    peak_memory_mb());
  return 0;
}
