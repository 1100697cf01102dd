#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double peak_memory_mb(void)
{
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) fail("cannot read /proc/self/status");
  char line[200];
  double megabytes = 0;
  while (fgets(line, sizeof line, status)) {
    if (!strncmp(line, "VmHWM:", 6)) megabytes = atof(line + 6) / 1024;
  }
  fclose(status);
  return megabytes;
}

const char *option(int count, char **arguments, const char *name, const char *otherwise)
{
  size_t length = strlen(name);
  for (int i = 1; i < count; i++) {
    if (!strncmp(arguments[i], name, length) && arguments[i][length] == '=') return arguments[i] + length + 1;
  }
  return otherwise;
}

_Noreturn void fail(const char *what)
{
  if (errno) fprintf(stderr, "%s: %s\n", what, strerror(errno));
  else fprintf(stderr, "%s\n", what);
  exit(1);
}

static _Noreturn void fail_sql(sqlite3 *store, const char *sql)
{
  fprintf(stderr, "%s: %s\n", sqlite3_errmsg(store), sql);
  exit(1);
}

sqlite3 *open_store(const char *path)
{
  sqlite3 *store;
  if (sqlite3_open_v2(path, &store, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL)) fail_sql(store, path);
  return store;
}

void close_store(sqlite3 *store)
{
  if (sqlite3_close(store)) fail_sql(store, "close");
}

void run_sql(sqlite3 *store, const char *sql)
{
  if (sqlite3_exec(store, sql, NULL, NULL, NULL)) fail_sql(store, sql);
}

sqlite3_stmt *prepare(sqlite3 *store, const char *format, ...)
{
  char sql[4096];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(sql, sizeof sql, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof sql) fail("the statement is too long");
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(store, sql, -1, &statement, NULL)) fail_sql(store, sql);
  return statement;
}

void execute(sqlite3_stmt *statement)
{
  if (sqlite3_step(statement) != SQLITE_DONE) fail_sql(sqlite3_db_handle(statement), sqlite3_sql(statement));
  sqlite3_reset(statement);
}

void copy_open_file(int source, const char *to, int is_durable)
{
  int target = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  struct stat status;
  if (source < 0 || target < 0 || fstat(source, &status)) fail("cannot open a file to copy");
  for (off_t left = status.st_size; left > 0;) {
    ssize_t copied = copy_file_range(source, NULL, target, NULL, (size_t)left, 0);
    if (copied <= 0) copied = sendfile(target, source, NULL, (size_t)left);
    if (copied <= 0) fail("cannot copy a file");
    left -= copied;
  }
  if (is_durable && fdatasync(target)) fail("cannot make a copy durable");
  close(target);
}

void copy_file(const char *from, const char *to, int is_durable)
{
  int source = open(from, O_RDONLY | O_CLOEXEC);
  copy_open_file(source, to, is_durable);
  close(source);
}

static void synchronize(const char *path, int flags)
{
  int file = open(path, O_RDONLY | O_CLOEXEC | flags);
  if (file < 0 || fsync(file)) fail("cannot make a file durable");
  close(file);
}

void synchronize_file(const char *path) { synchronize(path, 0); }

void synchronize_folder_of(const char *path)
{
  char folder[4096];
  const char *end = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", end ? (int)(end - path) : 1, end ? path : ".");
  synchronize(folder, O_DIRECTORY);
}

const struct names *names_of(const char *format)
{
  static const struct names plain = {"note", "content", "content2", "title", "created", "pinned", "id"};
  static const struct names core_data = {
    "ZNOTE", "ZCONTENT", "ZCONTENT2", "ZTITLE", "ZCREATED", "ZPINNED", "Z_PK"};
  if (!strcmp(format, "plain")) return &plain;
  if (!strcmp(format, "coredata")) return &core_data;
  errno = 0;
  fail("unknown format; expected 'plain' or 'coredata'");
}
