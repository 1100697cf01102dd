#include "CDatabase.h"

#include <sqlite3.h>

int instar_database_setting(struct sqlite3 *database, int setting, int on) {
  return sqlite3_db_config(database, setting, on, (int *)0);
}

/* SQLITE_TESTCTRL_IMPOSTER is how the command .imposter of the sqlite3 shell reads an index as a table. */
void instar_describe_tree(struct sqlite3 *database, int page) {
  sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, database, "main", page != 0, page);
}

void instar_forget_trees(struct sqlite3 *database) {
  /* "Off" with a page resets the schemas of the connection. */
  sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, database, "main", 0, 1);
}
