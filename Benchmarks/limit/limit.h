/* What the programs of the limit share.
 *
 * They do the same work as Instar with nothing around it: one process, libsqlite3, no plugin, no journal of phases.
 * So they show how fast this machine and SQLite can be. Every failure ends the program: a measurement of failed work
 * is worthless. */
#ifndef LIMIT_H
#define LIMIT_H

#include <sqlite3.h>
#include <stdint.h>

/* Seconds on a clock that never goes back. */
double seconds_now(void);

/* The peak of this process's memory, in MB. */
double peak_memory_mb(void);

/* Returns the value of the argument "NAME=VALUE", or `otherwise`. */
const char *option(int count, char **arguments, const char *name, const char *otherwise);

/* Prints a message with the error of errno, if there is one, and ends the program. */
_Noreturn void fail(const char *what);

sqlite3 *open_store(const char *path);
void close_store(sqlite3 *store);
void run_sql(sqlite3 *store, const char *sql);
sqlite3_stmt *prepare(sqlite3 *store, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Steps a statement that returns no rows, and resets it. */
void execute(sqlite3_stmt *statement);

/* Copies a file with copy_file_range, or with sendfile where the file system refuses that. */
void copy_file(const char *from, const char *to, int is_durable);

/* The same with a file that is open. */
void copy_open_file(int from, const char *to, int is_durable);

/* Makes a file, or the folder that contains it, durable. */
void synchronize_file(const char *path);
void synchronize_folder_of(const char *path);

/* How the two formats name what the benchmarks change. */
struct names {
  const char *note, *content, *content2, *title, *created, *pinned, *rowid;
};

/* Returns the names of the format "plain" or "coredata". */
const struct names *names_of(const char *format);

#endif
