/* A plugin whose constructor tries what a plugin must not be able to do, and what it must be
 * able to do, and says the errno of each: "try NAME ERRNO". $CLONE is the clone folder, $OUTSIDE
 * holds one file. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

void engine_say(const char *line);

static void say(const char *name, int number)
{
  char line[200];
  snprintf(line, sizeof line, "try %s %d\n", name, number);
  engine_say(line);
}

#define TRY(name, call) (errno = 0, say(name, (call) < 0 ? errno : 0))

static char paths[8][4096];

static const char *path(int slot, const char *variable, const char *name)
{
  const char *folder = getenv(variable);
  snprintf(paths[slot], sizeof paths[slot], "%s/%s", folder ? folder : "/nonexistent", name);
  return paths[slot];
}

static int opens(const char *file, int flags)
{
  int descriptor = open(file, flags | O_CLOEXEC, 0600);
  if (descriptor >= 0) close(descriptor);
  return descriptor;
}

static void *nothing(void *argument) { return argument; }

/* fork and vfork: a child must not run the rest of this. */
static int forked(long number)
{
  long child = syscall(number);
  if (child == 0) _exit(0);
  return (int)child;
}

static int spawned(void)
{
  pid_t child;
  char *arguments[] = {"/bin/true", NULL};
  errno = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, NULL);
  return errno ? -1 : 0;
}

static void __attribute__((constructor)) loaded(void)
{
  const char *outside = path(0, "OUTSIDE", "file");
  const char *inside = path(1, "CLONE", "file");

  TRY("create-inside", opens(inside, O_RDWR | O_CREAT));
  TRY("truncate-inside", opens(inside, O_RDWR | O_TRUNC));
  TRY("make-folder-inside", mkdir(path(2, "CLONE", "sub"), 0700));
  TRY("rename-inside", rename(inside, path(3, "CLONE", "sub/moved")));
  TRY("rename-out", rename(path(3, "CLONE", "sub/moved"), path(4, "OUTSIDE", "taken")));
  TRY("symlink-inside", symlink("/etc", path(4, "CLONE", "link")));
  TRY("fifo-inside", mkfifo(path(4, "CLONE", "fifo"), 0600));
  TRY("rename-in", rename(outside, path(4, "CLONE", "stolen")));
  TRY("link-in", link(outside, path(4, "CLONE", "linked")));
  TRY("remove-inside", unlink(path(3, "CLONE", "sub/moved")));
  rmdir(path(2, "CLONE", "sub"));

  TRY("read-outside", opens(outside, O_RDONLY));
  TRY("write-outside", opens(outside, O_WRONLY));
  TRY("create-outside", opens(path(4, "OUTSIDE", "new"), O_WRONLY | O_CREAT));
  TRY("remove-outside", unlink(outside));
  TRY("list-outside", opens(getenv("OUTSIDE"), O_RDONLY | O_DIRECTORY));
  TRY("truncate-outside", truncate(outside, 0));
  TRY("truncate-by-open", opens(outside, O_RDONLY | O_TRUNC));
  TRY("mode-outside", chmod(outside, 0777));
  TRY("times-outside", utimensat(AT_FDCWD, outside, NULL, 0));
  TRY("attribute-outside", setxattr(outside, "user.a", "b", 1, 0));
  TRY("owner-outside", chown(outside, getuid(), getgid()));

  TRY("read-library", opens("/usr/lib", O_RDONLY | O_DIRECTORY));
  TRY("read-zone", opens("/usr/share/zoneinfo/UTC", O_RDONLY));
  TRY("read-random", opens("/dev/urandom", O_RDONLY));
  pthread_attr_t bounds;
  errno = pthread_getattr_np(pthread_self(), &bounds);
  say("stack-bounds", errno);

  pthread_t thread;
  errno = pthread_create(&thread, NULL, nothing, NULL);
  say("start-thread", errno);
  if (errno == 0) pthread_join(thread, NULL);
#ifdef SYS_fork
  TRY("fork", forked(SYS_fork));
  TRY("vfork", forked(SYS_vfork));
#else
  TRY("fork", fork());
  say("vfork", EPERM);
#endif
  TRY("spawn", spawned());
  char *arguments[] = {"/bin/true", NULL};
  TRY("exec", execv("/bin/true", arguments));
  TRY("clone3", (int)syscall(435, NULL, 0));
  TRY("openat2", (int)syscall(437, AT_FDCWD, outside, NULL, 0));
  TRY("unknown-call", (int)syscall(463));

  TRY("socket", socket(AF_INET, SOCK_STREAM, 0));
  int pair[2];
  TRY("socket-pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  TRY("signal-parent", kill(getppid(), 0));
  TRY("signal-group", kill(0, 0));
  TRY("signal-itself", kill(getpid(), 0));
  TRY("signal-by-owner", fcntl(3, F_SETOWN, getppid()));
  TRY("trace-parent", (int)ptrace(PTRACE_ATTACH, getppid(), 0, 0));
  struct rlimit limit;
  TRY("own-limit", getrlimit(RLIMIT_NOFILE, &limit));
  char file[64];
  snprintf(file, sizeof file, "/proc/%d/task/%d/stat", (int)getpid(), (int)getpid());
  TRY("read-own-status", opens(file, O_RDONLY));
  snprintf(file, sizeof file, "/proc/%d/environ", (int)getppid());
  TRY("read-parent-environment", opens(file, O_RDONLY));
  snprintf(file, sizeof file, "/proc/%d/mem", (int)getppid());
  TRY("read-parent-memory", opens(file, O_RDONLY));
  snprintf(file, sizeof file, "/proc/%d/root/etc/passwd", (int)getppid());
  TRY("read-through-parent", opens(file, O_RDONLY));
  TRY("write-own-memory", opens("/proc/self/mem", O_WRONLY));
  TRY("list-processes", opens("/proc", O_RDONLY | O_DIRECTORY));
  TRY("read-kernel-memory", opens("/proc/kcore", O_RDONLY));
  TRY("write-setting", opens("/proc/sys/kernel/hostname", O_WRONLY));
  TRY("own-priority", setpriority(PRIO_PROCESS, 0, 1));
  TRY("parent-priority", setpriority(PRIO_PROCESS, getppid(), 1));
  TRY("parent-limit", prlimit(getppid(), RLIMIT_CPU, NULL, &limit));
  TRY("new-session", setsid());
  TRY("no-death-signal", prctl(PR_SET_PDEATHSIG, 0));
  TRY("new-namespace", unshare(CLONE_NEWUSER));
  TRY("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
  TRY("ring", (int)syscall(425, 1, NULL));
  TRY("shared-memory", shmget(IPC_PRIVATE, 4096, 0600));
  /* Answered, whatever the answer: descriptor 0 is no terminal. */
  isatty(0);
  say("is-terminal", errno == ENOTTY ? 0 : errno);
  TRY("terminal-input", ioctl(0, TIOCSTI, "x"));
}

static int answer = 42;

void *instar_plugin_plans(void) { return &answer; }
