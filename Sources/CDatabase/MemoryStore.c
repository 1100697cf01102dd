#include "CDatabase.h"

#include <sqlite3.h>

/* The file of the database, below SQLite's page cache. */
static int file_of(sqlite3 *database, sqlite3_file **file) {
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, file);
}

int instar_memory_open(const char *uri, sqlite3 **database) {
  *database = NULL;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX;
  int code = sqlite3_open_v2(uri, database, flags, "memdb");
  if (code != SQLITE_OK) instar_memory_close(*database), *database = NULL;
  return code;
}

int instar_memory_write(sqlite3 *database, const void *bytes, int count, int64_t offset) {
  sqlite3_file *file = NULL;
  int code = file_of(database, &file);
  return code == SQLITE_OK ? file->pMethods->xWrite(file, bytes, count, offset) : code;
}

int64_t instar_memory_size(sqlite3 *database) {
  sqlite3_file *file = NULL;
  sqlite3_int64 size = -1;
  if (file_of(database, &file) != SQLITE_OK || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return -1;
  return size;
}

void instar_memory_close(sqlite3 *database) { sqlite3_close(database); }
