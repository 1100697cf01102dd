/* fleet FOLDER OPERATION [format=plain|coredata] [workers=1] [batch=256]
 *
 * The limit for many small stores: all files below FOLDER whose names end in ".db". Prints one JSON line: the seconds
 * without the search for the stores, and their number.
 *
 *   shadow_batch  clone and change a batch of stores, make the batch durable with one syncfs, keep each original by a
 *                 link, rename each clone, and make the folders durable
 *   quick_check   run quick_check in each store
 *   detect_meta   open each store and read the version in its metadata
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
#include <unistd.h>

enum { MAXIMUM_WORKERS = 64 };

static char **stores;
static int store_count, store_capacity;

static const struct names *names;
static int is_core_data;
static int batch_size;
static atomic_int next_store;

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

static void add_column(const char *path)
{
  char sql[300];
  sqlite3 *store = open_store(path);
  run_sql(store, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF");
  snprintf(
    sql, sizeof sql, "BEGIN IMMEDIATE; ALTER TABLE %s ADD COLUMN %s INTEGER; PRAGMA user_version=2; COMMIT",
    names->note, names->pinned);
  run_sql(store, sql);
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

static void quick_check(const char *path)
{
  sqlite3 *store = open_to_read(path);
  sqlite3_stmt *check = prepare(store, "PRAGMA quick_check(1)");
  errno = 0;
  if (sqlite3_step(check) != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(check, 0), "ok")) {
    fail("a store is damaged");
  }
  sqlite3_finalize(check);
  close_store(store);
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
    void (*visit)(const char *) = !strcmp(operation, "quick_check") ? quick_check : read_version;
    for (int i = first; i < end; i++) visit(stores[i]);
  }
}

int main(int count, char **arguments)
{
  if (count < 3) {
    fputs("usage: fleet FOLDER OPERATION [format=plain|coredata] [workers=1] [batch=256]\n", stderr);
    return 2;
  }
  const char *folder = arguments[1];
  char *operation = arguments[2];
  if (strcmp(operation, "shadow_batch") && strcmp(operation, "quick_check") && strcmp(operation, "detect_meta")) {
    fail("unknown operation");
  }
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
