/* Stands in for libInstar.so: says what it was given, and exits with a status of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void engine_say(const char *line)
{
  send(3, line, strlen(line), MSG_NOSIGNAL);
}

static int work(const char *what, int descriptor, const char *plugin, void *(*plans)(void))
{
  char line[4096];
  const char *temporary = getenv("SQLITE_TMPDIR");
  snprintf(
    line, sizeof line, "%splugin %s plans %d temporary %s\n", what, plugin, *(int *)plans(),
    temporary ? temporary : "none");
  send(descriptor, line, strlen(line), MSG_NOSIGNAL);
  return 23;
}

int instar_worker_main(int descriptor, const char *plugin, void *(*plans)(void))
{
  return work("", descriptor, plugin, plans);
}

int instar_worker_main_after_fork(int descriptor, const char *plugin, void *(*plans)(void))
{
  static int calls;
  char what[64];
  snprintf(what, sizeof what, "after a fork: call %d, ", ++calls);
  return work(what, descriptor, plugin, plans);
}
