/* The parts of SQLite that Swift cannot import, and the guard of its system calls. */
#ifndef CDATABASE_H
#define CDATABASE_H

#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

/* Calls sqlite3_db_config() for an on/off setting (SQLITE_DBCONFIG_DEFENSIVE and the like). Returns SQLite's result
 * code. */
int instar_database_setting(struct sqlite3 *database, int setting, int on);

/* sqlite3_prepare_v2() for a query of somebody else. A name in double quotes that no column has is an error here, and not
 * a text. Sets `rest` to what follows the first statement. Returns SQLite's result code. */
int instar_prepare_query(struct sqlite3 *database, const char *sql, struct sqlite3_stmt **statement, const char **rest);

/* While `page` is not 0, a CREATE TABLE statement of this connection describes the b-tree with that root page instead of
 * making one: only the connection's own schema knows the table, and nothing is written. Page 0 ends that. */
void instar_describe_tree(struct sqlite3 *database, int page);

/* Forgets the tables of instar_describe_tree(): the connection reads its schema again. */
void instar_forget_trees(struct sqlite3 *database);

/* From the first call on, SQLite in this process opens only regular files, folders and the kernel's random source, never
 * follows a symbolic link in the last part of a path, and never waits in open(2), as it would for the other end of a
 * FIFO. Also does what instar_distinguish_errors() does. Returns SQLite's result code. */
int instar_guard_install(void);

/* From the first call on, SQLite in this process reports a quota or a limit of the size of files that is used up as a full
 * disk (SQLITE_FULL), and a failed read as that (SQLITE_IOERR_READ), not as a damaged file. */
void instar_distinguish_errors(void);

/* How many of SQLite's reads of files have failed on the calling thread since the first call of
 * instar_distinguish_errors(). */
unsigned instar_failed_reads(void);

/* Why SQLite last reported a full disk after a write of the calling thread: ENOSPC, EDQUOT, or EFBIG for the limit of the
 * size of files; 0 if no write has failed so since the last call. SQLite also reports a full disk without a write, where a
 * database may have no more pages: the reason of an earlier write must not explain that. */
int instar_take_reason_of_full_disk(void);

/* open(2) that follows no link at the end. It does not block on a FIFO, but waits up to two seconds for a lease of another
 * process: a keeper leases a store during a cutover by exchange. */
int instar_open_waiting(const char *name, int flags, int mode);

/* Until the matching instar_guard_leave(), SQLite on the calling thread
 *  - opens only the file `path` and its side files (`path` with "-wal", "-shm" or "-journal" appended), for reading; only
 *    the shared memory may be opened for writing, because readers record there what they read;
 *  - creates, truncates and removes no file;
 *  - opens the file `path` only if it has that device and inode.
 * A refused call fails in SQLite as an open or input/output error. Not nested. `path` must stay valid until the guard is
 * left. */
void instar_guard_enter(const char *path, unsigned long long device, unsigned long long inode);

/* Returns whether `path` named another file. */
int instar_guard_leave(void);

/* While `on`, a write transaction that ends on the calling thread in write-ahead-log mode does not release the write lock
 * to the kernel. No other process can take the lock before another connection of this process does, which the kernel
 * allows. If none does, the lock is released when the store is closed. Needs instar_guard_install(). */
void instar_keep_write_lock(int on);

/* Interrupts the statements of a connection (SQLITE_INTERRUPT) while the budget of the process is used up. */
void instar_budget_observe(struct sqlite3 *database);

/* Told how far the statements of a connection are: the rows that full scans of tables have read, and the instructions
 * since the observer was set. */
struct instar_progress_observer {
  void (*report)(void *context, int64_t scanned_rows, int64_t instructions);
  void *context;
  /* For instar_progress_observe() alone. */
  struct sqlite3 *database;
  int64_t instructions;
  int instructions_per_call;
};

/* Observes a connection as instar_budget_observe() does, and calls the observer after each so many instructions
 * of a statement: within the statement's step, on its thread. It must not use the connection. The observer must stay valid
 * until the connection is closed or observed again. Starts the counts at 0. */
void instar_progress_observe(struct sqlite3 *database, struct instar_progress_observer *observer,
                             int instructions_per_call);

/* Gives the process a budget of processor time. If the process is still in the same SQL function when `grace` more seconds
 * are used, it exits with `status`. Child processes do not inherit the budget. Returns -1 and sets errno on failure. */
int instar_budget_begin(double seconds, double grace, int status);

/* Whether the budget, or the limit of the current step, is used up. */
int instar_budget_is_used_up(void);

/* Removes the budget. Returns the seconds that are left, negative when it is used up. */
double instar_budget_end(void);

/* For a process that also runs a plugin, whose own time is not limited here: limits the processor time of each single
 * step of a statement from now on. Then SQLite interrupts the statement, on connections that are observed; a process in
 * which that does not help exits with `status` after the grace. Times are in seconds. SIGXCPU ends the process at once,
 * with `status` during a step and 0 otherwise: so whoever has waited too long learns why. */
int instar_step_limit(int seconds, int grace, int status);

/* Odd during a step. Other threads' steps at the same time only hide each other. */
extern volatile unsigned instar_step_number;

/* A sum over rows that does not depend on their order: equal for an index and its table. Each row's hash has keys that
 * the process chose at random, so nobody can build an index whose wrong entries have the sum of the right ones. */
struct instar_fingerprint {
  int64_t count;
  uint64_t sum;
};

/* What an index has of a row of its table. */
struct instar_index_columns {
  /* The place of its first column in `columns`, and how many there are. */
  int first, count;
  /* The column of the statement that is 0 for rows that the index leaves out; -1 for none. */
  int condition;
};

/* Rows to read: of a statement, or those of a b-tree of the main database, straight from the file. A tree takes a third of
 * the time. The file must not change meanwhile: read it in a transaction, or on an immutable connection. */
struct instar_rows {
  /* NULL for a tree. */
  struct sqlite3_stmt *statement;
  struct sqlite3 *database;
  uint32_t root;
  /* Whether it is the tree of an index, or of a table without rowid. */
  int is_index;
  /* How many columns of each record are read. */
  int column_count;
  /* Whether columns that a record does not have are NULL: they were added later. Else such a record is an error. */
  int missing_is_null;
};

/* The rowid of a tree's rows, as a column. An INTEGER PRIMARY KEY is the rowid, whatever the record has for it. */
enum { INSTAR_ROWID = -1 };

/* Reads all rows of a table, and adds each to the fingerprints of its indexes. A tree has no conditions. The store's encoding
 * must be UTF-8. Returns SQLITE_DONE, or the first error; where a tree cannot be read as the file format is documented,
 * another code than a statement would, and the fingerprints are of no use. */
int instar_fingerprint_table(
    const struct instar_rows *rows, const struct instar_index_columns *indexes, int index_count,
    const int *columns, const uint64_t keys[2], struct instar_fingerprint *fingerprints);

/* How SQLite compares texts: by their bytes, without the case of ASCII letters, or without spaces at the end. */
enum instar_collation { INSTAR_BINARY, INSTAR_NOCASE, INSTAR_RTRIM };

struct instar_index_term {
  enum instar_collation collation;
  int is_descending;
};

/* The order of an index. The first `key_count` terms are the key; SQLite appends the others. */
struct instar_index_order {
  const struct instar_index_term *terms;
  int term_count, key_count, is_unique;
};

enum instar_index_problem { INSTAR_INDEX_IS_SOUND, INSTAR_INDEX_REPEATS_KEY, INSTAR_INDEX_IS_NOT_IN_ORDER };

/* Reads the entries of an index, whose terms are the first columns, and adds each to the fingerprint. Stops at the first
 * problem. Returns SQLITE_DONE, the first error, or SQLITE_NOMEM. */
int instar_scan_index(
    const struct instar_rows *entries, const struct instar_index_order *order, const uint64_t keys[2],
    struct instar_fingerprint *fingerprint, enum instar_index_problem *found);

/* Steps through rows, and finds out whether two of them may have equal values in all columns. Sets `may_repeat` to 0 if
 * none have, under any collation of SQLite. Sets it to 1 if hashes of values are equal, if there are more than `limit`
 * rows, or without memory: then SQL has to compare the values. Needs up to 32 bytes for each row. The store's encoding
 * must be UTF-8. Returns SQLITE_DONE, or the error of a step. */
int instar_may_repeat(struct sqlite3_stmt *rows, size_t limit, const uint64_t keys[2], int *may_repeat);

/* A row by its key. The hash is that of its values, then the number of its group. */
struct instar_row_hash {
  uint64_t hash;
  int64_t key;
};

/* Sixteen bytes for each row. The caller frees `rows`, also after an error. */
struct instar_row_hashes {
  struct instar_row_hash *rows;
  size_t count, capacity;
};

/* Steps through at most `limit` rows, whose first column is their key, and adds the hash of the other columns of each. Rows
 * that are equal under any collation of SQLite have equal hashes; other rows may have. Leaves out rows with NULL, which is
 * equal to nothing. Returns SQLITE_ROW if there may be more rows, SQLITE_DONE, the error of a step, or SQLITE_NOMEM. */
int instar_hash_rows(
    struct sqlite3_stmt *rows, size_t limit, const uint64_t keys[2], struct instar_row_hashes *found);

/* Leaves only the rows whose hash another row has too: group after group, in the order of the lowest keys of the groups,
 * and by key in each. The hash of a row is then the number of its group. */
void instar_keep_repeated(struct instar_row_hashes *found);

/* The rows that keys reference. */
struct instar_key_rows {
  const struct instar_rows *rows;
  /* The column with the key, and the least and the greatest key. */
  int key;
  int64_t least, greatest;
  /* Only rows count whose column `kind` has one of `kinds`; all rows where there are none. */
  int kind, kind_count;
  const int64_t *kinds;
};

/* Finds out whether each value of a column is NULL or the key of a row, by a set with one bit for each key from the least
 * to the greatest. Sets `are_found` to 1 if so. Sets it to 0 if another value is among them, if a key is not an integer,
 * or if the set would need more than 32 MiB: then SQL has to look the keys up. Returns SQLITE_DONE, the first error, or
 * SQLITE_NOMEM. */
int instar_find_keys(
    const struct instar_rows *rows, int column, const struct instar_key_rows *targets, int *are_found);

/* Returns the schema format of the file of a connection, as its header has it: 1 to 4; 0 for a database in memory. */
int instar_file_format(struct sqlite3 *database);

/* The file of a store that no connection of this process has open, as far as its header says. */
struct instar_pages {
  int descriptor;
  uint32_t page_size, page_count;
  /* The bytes of a page without those that are reserved at its end. */
  uint32_t usable;
  /* Whether the header says write-ahead-log mode. */
  int uses_log;
  int32_t user_version;
};

/* Reads the header of a file that is open for reading and has `size` bytes. Returns SQLITE_OK where the file is as SQLite
 * writes it today, in UTF-8, and complete; another code where only SQLite can say what the file is. */
int instar_pages_open(struct instar_pages *pages, int descriptor, int64_t size);

/* Values of rows, one after the other: a byte for its kind (0 for NULL, 1 for an integer, 3 for a text, 4 for a blob), then
 * an integer or a size as an int64_t, then the bytes. */
struct instar_row_list {
  /* The caller frees them, also after an error. */
  unsigned char *bytes;
  size_t count, capacity;
  /* More bytes are not read. */
  size_t limit;
};

/* Reads all rows of a table's b-tree: of each the rowid, and then its first columns. Reads no locks and no log: the caller
 * makes sure that nobody writes meanwhile. Returns SQLITE_DONE. With any other code SQLite has to read the table: its pages
 * may be damaged, or a value is a real. */
int instar_pages_read(
    const struct instar_pages *pages, uint32_t root, int column_count, struct instar_row_list *list);

/* Reads the schema in the same way: of each object type, name, table and statement, and whether it has a b-tree; and the
 * pages at which these begin, 0 for none. No two are the same, and the file has each. The caller frees `roots`. */
int instar_pages_read_schema(
    const struct instar_pages *pages, struct instar_row_list *list, uint32_t **roots, size_t *root_count);

/* Takes the lock with which SQLite reads a file in rollback mode (os_unix.c, unixLock), for this description of the file.
 * Does not wait. Returns -1 where another process writes, or where the file system has no locks. Closing the descriptor
 * releases it. */
int instar_lock_shared(int descriptor);

/* Copies what follows the position of a file to that of another one. Shares the blocks where the file system can do that.
 * Returns -1 and sets errno on failure. */
int instar_copy_contents(int target, int source);

static inline void instar_step_begin(void) { instar_step_number++; }
static inline void instar_step_end(void) { instar_step_number++; }

#endif
