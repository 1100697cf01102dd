/* The one function of SQLite that Swift cannot import, because it takes a variable argument list. */
#ifndef CDATABASE_H
#define CDATABASE_H

struct sqlite3;

/* sqlite3_db_config() for the settings that are on or off (SQLITE_DBCONFIG_DEFENSIVE and the like).
 * Returns SQLite's result code. */
int instar_database_setting(struct sqlite3 *database, int setting, int on);

#endif
