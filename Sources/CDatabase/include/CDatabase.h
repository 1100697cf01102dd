/* The parts of SQLite that Swift cannot import, and the guard of its system calls. */
#ifndef CDATABASE_H
#define CDATABASE_H

struct sqlite3;

/* Calls sqlite3_db_config() for an on/off setting (SQLITE_DBCONFIG_DEFENSIVE and the like). Returns SQLite's result
 * code. */
int instar_database_setting(struct sqlite3 *database, int setting, int on);

/* From the first call on, SQLite in this process opens only regular files, folders and the kernel's random source, never
 * follows a symbolic link in the last part of a path, and never waits in open(2), as it would for the other end of a
 * FIFO. Returns SQLite's result code. */
int instar_guard_install(void);

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

#endif
