/* Stands in for a keeper: starts its arguments with one end of a socket pair as descriptor 3,
 * says the process's number once that has said something, and waits. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
  int pair[2];
  char byte;
  if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    /* The group of the parent is killed by the tests; a worker has one of its own. */
    setpgid(0, 0);
    dup2(pair[1], 3);
    execv(argv[1], argv + 1);
    _exit(1);
  }
  if (read(pair[0], &byte, 1) != 1) return 1;
  printf("%d\n", (int)child);
  fflush(stdout);
  for (;;) pause();
}
