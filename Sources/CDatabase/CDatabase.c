/* For copy_file_range(). */
#define _GNU_SOURCE
#include "CDatabase.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

int instar_database_setting(struct sqlite3 *database, int setting, int on) {
  return sqlite3_db_config(database, setting, on, (int *)0);
}

int instar_prepare_query(struct sqlite3 *database, const char *sql, struct sqlite3_stmt **statement, const char **rest) {
  int accepts_texts = 0;
  sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, -1, &accepts_texts);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
  int code = sqlite3_prepare_v2(database, sql, -1, statement, rest);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, accepts_texts, (int *)0);
  return code;
}

/* SQLITE_TESTCTRL_IMPOSTER is how the command .imposter of the sqlite3 shell reads an index as a table. */
void instar_describe_tree(struct sqlite3 *database, int page) {
  sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, database, "main", page != 0, page);
}

void instar_forget_trees(struct sqlite3 *database) {
  /* "Off" with a page resets the schemas of the connection. */
  sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, database, "main", 0, 1);
}

int instar_copy_contents(int target, int source) {
  /* The kernel copies at most 2 GiB at once. */
  size_t most = (size_t)1 << 30;
  for (;;) {
    ssize_t count = copy_file_range(source, 0, target, 0, most, 0);
    if (count == 0) return 0;
    if (count < 0 && errno != EINTR) return -1;
  }
}
