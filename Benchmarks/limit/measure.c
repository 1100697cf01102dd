/* measure COMMAND [ARGUMENT]...
 *
 * Runs a command until it and all processes that it started have ended. Prints one JSON line on standard error: the
 * seconds until the command ended, its exit status, and the peak of the memory of the largest process.
 *
 * A program of its own, because the kernel counts the memory of the process that starts a command as the command's. */
#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
  if (count < 2) {
    fputs("usage: measure COMMAND [ARGUMENT]...\n", stderr);
    return 2;
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1)) fail("cannot become the parent of orphans");
  double start = seconds_now(), seconds = 0;
  pid_t command = fork();
  if (command < 0) fail("cannot start a process");
  if (command == 0) {
    execv(arguments[1], arguments + 1);
    fail(arguments[1]);
  }
  long largest = 0;
  int status = 0, result = 0;
  struct rusage usage;
  for (pid_t ended; (ended = wait4(-1, &status, 0, &usage)) > 0;) {
    if (usage.ru_maxrss > largest) largest = usage.ru_maxrss;
    if (ended != command) continue;
    seconds = seconds_now() - start;
    result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  if (errno != ECHILD) fail("cannot wait for a process");
  fprintf(stderr, "{\"s\":%.4f,\"status\":%d,\"rss_mb\":%.1f}\n", seconds, result, (double)largest / 1024);
  return 0;
}
