/* Starting a program as another user, with no capability.
 *
 * posix_spawn(3) cannot change the user, so the child does it itself between fork and exec. It has a
 * memory of its own (no vfork): for a moment it runs as another user, who must not reach the memory
 * of this process through it. The C library's setresuid() would change every thread of the process,
 * and takes locks to do so; the child uses the system calls, which change the caller only, and
 * nothing else that is not async-signal-safe (signal-safety(7)). */

#define _GNU_SOURCE
#include "CInstar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
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

/* Descriptors 0 to `count` - 1 become copies of `sources`; no other stays open but `failure`, which
 * becomes `count`, close-on-exec. 0, or an errno. */
static int arrange_descriptors(const int *sources, int count, int failure)
{
  for (int i = 0; i < count; i++) {
    if (dup2(sources[i], i) < 0) return errno;
  }
  if (dup3(failure, count, O_CLOEXEC) < 0) return errno;
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

int instar_spawn_as(
  const struct instar_identity *identity, const char *executable, char *const arguments[],
  char *const environment[], int input, int output, int error, int channel, pid_t *pid)
{
  const int wanted[4] = {input, output, error, channel};
  const int count = channel >= 0 ? 4 : 3;
  int sources[4];
  int failure[2] = {-1, -1};
  int problem = 0;

  /* Above those that are about to be replaced: the pipe whose number happens to be 1 must not be
   * lost when 1 is replaced. */
  int copied = 0;
  for (; copied < count && problem == 0; copied++) {
    sources[copied] = fcntl(wanted[copied], F_DUPFD_CLOEXEC, 10);
    if (sources[copied] < 0) {
      problem = errno;
      break;
    }
  }
  if (problem == 0 && pipe2(failure, O_CLOEXEC) != 0) problem = errno;
  int failure_end = -1;
  if (problem == 0) {
    failure_end = fcntl(failure[1], F_DUPFD_CLOEXEC, 10);
    if (failure_end < 0) problem = errno;
  }

  if (problem == 0) {
    /* No handler of this process may run in the child. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = _Fork();
    if (child == 0) {
      int reason = setpgid(0, 0) == 0 ? 0 : errno;
      if (reason == 0) reason = arrange_descriptors(sources, count, failure_end);
      if (reason == 0) reason = become(identity);
      /* Where the parent is may be closed to that user. */
      if (reason == 0 && chdir("/") != 0) reason = errno;
      if (reason == 0) reason = reset_signals();
      if (reason == 0) {
        execve(executable, arguments, environment);
        reason = errno;
      }
      /* The descriptor is still the old one where arranging failed. */
      if (write(count, &reason, sizeof reason) != (ssize_t)sizeof reason) {
        (void)!write(failure_end, &reason, sizeof reason);
      }
      _exit(127);
    }
    if (child < 0) problem = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(failure[1]);
    close(failure_end);
    failure[1] = failure_end = -1;

    if (child > 0) {
      int reason = 0;
      ssize_t size;
      do {
        size = read(failure[0], &reason, sizeof reason);
      } while (size < 0 && errno == EINTR);
      /* Nothing comes where exec has closed the pipe. */
      if (size == 0) {
        *pid = child;
      } else {
        problem = size == (ssize_t)sizeof reason && reason != 0 ? reason : EIO;
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
      }
    }
  }

  for (int i = 0; i < copied; i++) close(sources[i]);
  for (int i = 0; i < 2; i++) {
    if (failure[i] >= 0) close(failure[i]);
  }
  if (failure_end >= 0) close(failure_end);
  return problem;
}
