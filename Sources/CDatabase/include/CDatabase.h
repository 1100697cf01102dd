/* What Swift cannot import of SQLite, or cannot do for it. */
#ifndef CDATABASE_H
#define CDATABASE_H

struct sqlite3;

/* sqlite3_db_config() for the settings that are on or off (SQLITE_DBCONFIG_DEFENSIVE and the like).
 * Returns SQLite's result code. */
int instar_database_setting(struct sqlite3 *database, int setting, int on);

/* From the first call on, SQLite opens regular files and folders only in this process (and the
 * kernel's source of random bytes), never follows a symbolic link in the last part of a path, and
 * never waits in open(2), as it would for the other end of a FIFO. Returns SQLite's result code. */
int instar_guard_install(void);

/* From here to the matching instar_guard_leave(), SQLite on the calling thread
 *  - opens nothing but the file `path` and its side files (`path` with "-wal", "-shm" or "-journal"
 *    behind it), for reading: of these only the shared memory that processes have between
 *    themselves may be opened for writing, since readers note there what they read;
 *  - makes, empties and removes no file;
 *  - opens the file `path` only where it has that device and inode.
 * What is refused fails in SQLite with an error of opening or input/output. Not nested. The text
 * has to stay where it is until the guard is left. */
void instar_guard_enter(const char *path, unsigned long long device, unsigned long long inode);

/* Returns whether another file was met at `path`. */
int instar_guard_leave(void);

/* While `on`, the end of a write transaction on the calling thread, in write-ahead-log mode, does not
 * give the write lock back to the kernel: no other process can have it before another connection of
 * this process takes it, which the kernel allows. Taken by nobody, it goes when the store is closed.
 * Needs instar_guard_install(). */
void instar_keep_write_lock(int on);

#endif
