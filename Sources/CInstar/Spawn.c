/* Starting a program, as this process's user or as another one.
 *
 * As the same user: posix_spawn(3), which copies no memory tables however large this process is.
 *
 * As another user, or without capabilities: posix_spawn(3) cannot change these, so the child does it
 * itself between fork and exec. It has a memory of its own (no vfork): for a moment it runs as
 * another user, who must not reach the memory of this process through it. The C library's
 * setresuid() would change every thread of the process, and takes locks to do so; the child uses the
 * system calls, which change the caller only, and nothing else that is not async-signal-safe
 * (signal-safety(7)). */

#define _GNU_SOURCE
#include "CInstar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int get_capabilities(struct __user_cap_data_struct data[2])
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  return (int)syscall(SYS_capget, &header, data);
}

int instar_may_change_user(void)
{
  struct __user_cap_data_struct data[2];
  if (get_capabilities(data) != 0) return 0;
  const uint32_t needed = 1u << CAP_SETUID | 1u << CAP_SETGID;
  return (data[0].effective & needed) == needed;
}

/* 0, or an errno. */
static int become(const struct instar_identity *identity)
{
  if (identity->changes_user) {
    if (syscall(SYS_setgroups, identity->group_count, identity->groups) != 0) return errno;
    if (syscall(SYS_setresgid, identity->gid, identity->gid, identity->gid) != 0) return errno;
    if (syscall(SYS_setresuid, identity->uid, identity->uid, identity->uid) != 0) return errno;
  }
  /* A change between two users that are both not root keeps capabilities, and an exec by root would
   * get them all back, were it not for no_new_privs. */
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct none[2];
  memset(none, 0, sizeof none);
  if (syscall(SYS_capset, &header, none) != 0) return errno;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;

  struct __user_cap_data_struct left[2];
  if (get_capabilities(left) != 0) return errno;
  for (int i = 0; i < 2; i++) {
    if (left[i].permitted != 0 || left[i].effective != 0) return EPERM;
  }
  if (identity->changes_user && (getuid() != identity->uid || geteuid() != identity->uid)) {
    return EPERM;
  }
  return 0;
}

/* Descriptors 0 to `count` - 1 become copies of `sources`; no other stays open but `*failure`, which
 * becomes `count`, close-on-exec. 0, or an errno; `*failure` then says where the pipe is. */
static int arrange_descriptors(const int *sources, int count, int *failure)
{
  for (int i = 0; i < count; i++) {
    if (dup2(sources[i], i) < 0) return errno;
  }
  if (dup3(*failure, count, O_CLOEXEC) < 0) return errno;
  *failure = count;
  if (syscall(SYS_close_range, count + 1, ~0u, 0) != 0) return errno;
  return 0;
}

static int reset_signals(void)
{
  struct sigaction standard;
  memset(&standard, 0, sizeof standard);
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; signal++) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    /* EINVAL for the two that the C library keeps for itself. */
    sigaction(signal, &standard, NULL);
  }
  sigset_t none;
  sigemptyset(&none);
  return sigprocmask(SIG_SETMASK, &none, NULL) == 0 ? 0 : errno;
}

/* What a child gets as its descriptors 0, 1, 2 and, if there is a channel, 3. */
struct sources {
  int count;
  int descriptors[4];
};

static void close_sources(const struct sources *sources)
{
  for (int i = 0; i < sources->count; i++) close(sources->descriptors[i]);
}

/* Copies the descriptors above those that are about to be replaced: the pipe whose number happens to
 * be 1 must not be lost when 1 is replaced. 0, or an errno. */
static int copy_sources(const int wanted[4], struct sources *sources)
{
  const int count = wanted[3] >= 0 ? 4 : 3;
  for (sources->count = 0; sources->count < count; sources->count++) {
    int copy = fcntl(wanted[sources->count], F_DUPFD_CLOEXEC, 10);
    if (copy < 0) {
      int problem = errno;
      close_sources(sources);
      return problem;
    }
    sources->descriptors[sources->count] = copy;
  }
  return 0;
}

/* 0, or an errno. */
static int spawn_as_same_user(
  const char *executable, char *const arguments[], char *const environment[],
  const struct sources *sources, pid_t *pid)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);

  int problem = 0;
  for (int i = 0; i < sources->count && problem == 0; i++) {
    problem = posix_spawn_file_actions_adddup2(&actions, sources->descriptors[i], i);
  }
  if (problem == 0) problem = posix_spawn_file_actions_addclosefrom_np(&actions, sources->count);

  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  if (problem == 0) problem = posix_spawnattr_setsigmask(&attributes, &none);
  if (problem == 0) problem = posix_spawnattr_setsigdefault(&attributes, &all);
  if (problem == 0) problem = posix_spawnattr_setpgroup(&attributes, 0);
  if (problem == 0) {
    problem = posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  if (problem == 0) {
    problem = posix_spawn(pid, executable, &actions, &attributes, arguments, environment);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

/* The child's part, after fork: becomes the user and the program. Returns never; a failure's errno
 * goes through the pipe `failure`. */
static void exec_as(
  const struct instar_identity *identity, const char *executable, char *const arguments[],
  char *const environment[], const struct sources *sources, int failure)
{
  int reason = setpgid(0, 0) == 0 ? 0 : errno;
  if (reason == 0) reason = arrange_descriptors(sources->descriptors, sources->count, &failure);
  if (reason == 0) reason = become(identity);
  /* Where the parent is may be closed to that user. */
  if (reason == 0 && chdir("/") != 0) reason = errno;
  if (reason == 0) reason = reset_signals();
  if (reason == 0) {
    execve(executable, arguments, environment);
    reason = errno;
  }
  /* So few bytes fit into the empty pipe. */
  (void)!write(failure, &reason, sizeof reason);
  _exit(127);
}

/* Waits until the child has executed the program or failed to. 0, or the child's errno; a child that
 * failed is reaped. */
static int wait_for_exec(pid_t child, int failure)
{
  int reason = 0;
  ssize_t size;
  do {
    size = read(failure, &reason, sizeof reason);
  } while (size < 0 && errno == EINTR);
  /* Nothing comes where exec has closed the pipe. */
  if (size == 0) return 0;
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
  return size == (ssize_t)sizeof reason && reason != 0 ? reason : EIO;
}

/* 0, or an errno. */
static int spawn_as(
  const struct instar_identity *identity, const char *executable, char *const arguments[],
  char *const environment[], const struct sources *sources, pid_t *pid)
{
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return errno;
  int problem = 0;
  int failure_end = fcntl(failure[1], F_DUPFD_CLOEXEC, 10);
  if (failure_end < 0) problem = errno;
  close(failure[1]);

  if (problem == 0) {
    /* No handler of this process may run in the child. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = _Fork();
    if (child == 0) exec_as(identity, executable, arguments, environment, sources, failure_end);
    if (child < 0) problem = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(failure_end);
    if (problem == 0) problem = wait_for_exec(child, failure[0]);
    if (problem == 0) *pid = child;
  }
  close(failure[0]);
  return problem;
}

int instar_spawn(
  const struct instar_identity *identity, const char *executable, char *const arguments[],
  char *const environment[], int input, int output, int error, int channel, pid_t *pid)
{
  /* A parent may have been started with SIGCHLD ignored; its children would then vanish without a
   * status. */
  struct sigaction child;
  if (sigaction(SIGCHLD, NULL, &child) == 0 && child.sa_handler == SIG_IGN) {
    signal(SIGCHLD, SIG_DFL);
  }
  struct sources sources;
  int problem = copy_sources((const int[4]){input, output, error, channel}, &sources);
  if (problem != 0) return problem;
  problem = identity == NULL
    ? spawn_as_same_user(executable, arguments, environment, &sources, pid)
    : spawn_as(identity, executable, arguments, environment, &sources, pid);
  close_sources(&sources);
  return problem;
}
