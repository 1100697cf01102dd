#include "CDatabase.h"

/* As in sqlite3.h. */
int sqlite3_db_config(struct sqlite3 *, int op, ...);

int instar_database_setting(struct sqlite3 *database, int setting, int on) {
  return sqlite3_db_config(database, setting, on, (int *)0);
}
