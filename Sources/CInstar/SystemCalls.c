#define _GNU_SOURCE
#include "CInstar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

int instar_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int instar_pidfd_send_signal(int pidfd, int signal)
{
  return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

int instar_set_disk_priority(bool idle, int level)
{
  /* The values of linux/ioprio.h, which some headers lack. `who` 0 is the calling thread. */
  const int who_process = 1, class_best_effort = 2, class_idle = 3, class_shift = 13;
  const int priority = idle ? class_idle << class_shift : class_best_effort << class_shift | level;
  return (int)syscall(SYS_ioprio_set, who_process, 0, priority);
}

int instar_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC); }

int instar_peer(int socket, pid_t *pid, uid_t *user, gid_t *groups, int limit)
{
  struct ucred credentials;
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) return -1;
  *pid = credentials.pid;
  *user = credentials.uid;
  if (limit < 1) return 0;
  groups[0] = credentials.gid;
  /* SO_PEERGROUPS is newer than some headers. */
  size = (socklen_t)(limit - 1) * sizeof *groups;
  if (getsockopt(socket, SOL_SOCKET, 59, groups + 1, &size) < 0) return -1;
  return 1 + (int)(size / sizeof *groups);
}

static volatile sig_atomic_t is_canceled;
static int cancellation_descriptor = -1;

static void remember_cancellation(int signal)
{
  (void)signal;
  is_canceled = 1;
  uint64_t one = 1;
  int error = errno;
  if (cancellation_descriptor >= 0 && write(cancellation_descriptor, &one, sizeof one) < 0) {
    /* It is readable already. */
  }
  errno = error;
}

void instar_observe_cancellation(void)
{
  struct sigaction action = {.sa_handler = remember_cancellation, .sa_flags = SA_RESTART};
  /* It fails for signals that cannot be caught only. */
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  /* nohup(1) has it ignored: a process under it outlives its terminal. */
  struct sigaction hangup;
  if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, NULL);
}

int instar_cancellation_descriptor(void)
{
  if (cancellation_descriptor < 0) cancellation_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return cancellation_descriptor;
}

bool instar_is_canceled(void) { return is_canceled != 0; }

int instar_pidfd_wait(int pidfd, int *signaled, int *code)
{
  siginfo_t info;
  memset(&info, 0, sizeof info);
  int result;
  do {
    /* 3 is P_PIDFD, which is an enumerator newer than some headers. */
    result = waitid((idtype_t)3, (id_t)pidfd, &info, WEXITED);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return -1;
  *signaled = info.si_code != CLD_EXITED;
  *code = info.si_status;
  return 0;
}

int instar_stream_pair(int *one, int *other)
{
  int descriptors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors) < 0) return -1;
  *one = descriptors[0];
  *other = descriptors[1];
  return 0;
}

int instar_adopt_orphans(void) { return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void instar_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int instar_memory_file(void) { return memfd_create("instar", MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int instar_seal(int descriptor)
{
  return fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

int instar_pipe(int *read_end, int *write_end)
{
  int descriptors[2];
  if (pipe2(descriptors, O_CLOEXEC) < 0) return -1;
  *read_end = descriptors[0];
  *write_end = descriptors[1];
  return 0;
}

static int rename_with(
  int folder, const char *old_name, int new_folder, const char *new_name, unsigned flags)
{
  return (int)syscall(SYS_renameat2, folder, old_name, new_folder, new_name, flags);
}

int instar_rename_exchange(int folder, const char *old_name, int new_folder, const char *new_name)
{
  return rename_with(folder, old_name, new_folder, new_name, 2 /* RENAME_EXCHANGE */);
}

int instar_rename_no_replace(int folder, const char *old_name, int new_folder, const char *new_name)
{
  return rename_with(folder, old_name, new_folder, new_name, 1 /* RENAME_NOREPLACE */);
}

int instar_start_writing(int descriptor)
{
  return sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int open_without_links(const char *path)
{
  /* struct open_how of <linux/openat2.h>. */
  struct {
    uint64_t flags, mode, resolve;
  } how = {
    .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
    .resolve = 0x04 /* RESOLVE_NO_SYMLINKS */,
  };
  int descriptor;
  do {
    descriptor = (int)syscall(437 /* openat2 */, AT_FDCWD, path, &how, sizeof how);
  } while (descriptor < 0 && errno == EAGAIN); /* somebody renamed a folder on the way meanwhile */
  return descriptor;
}

/* The same way, step by step. systemd refuses openat2 to a service with RestrictSUIDSGID=: its filter
 * cannot see the mode of a file that it might make. */
static int open_step_by_step(const char *path)
{
  int current = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (current >= 0) {
    path += strspn(path, "/");
    const size_t length = strcspn(path, "/");
    if (length == 0) return current;
    char name[NAME_MAX + 1];
    int next = -1;
    if (length > NAME_MAX) {
      errno = ENAMETOOLONG;
    } else {
      memcpy(name, path, length);
      name[length] = '\0';
      path += length;
      /* A link inside the path is not a folder. One at the end is opened itself: another file. */
      const int is_last = path[strspn(path, "/")] == '\0';
      next = openat(
        current, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY));
    }
    const int problem = errno;
    close(current);
    errno = problem;
    current = next;
  }
  return -1;
}

int instar_status_without_links(const char *path, uint64_t *device, uint64_t *inode)
{
  int descriptor = open_without_links(path);
  if (descriptor < 0 && errno == ENOSYS) descriptor = open_step_by_step(path);
  if (descriptor < 0) return -1;
  struct stat status;
  int result = fstat(descriptor, &status);
  if (result == 0) {
    *device = status.st_dev;
    *inode = status.st_ino;
  }
  close(descriptor);
  return result;
}

int instar_creation_time(const char *path, int64_t *nanoseconds)
{
  struct statx status;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0) return -1;
  *nanoseconds = 0;
  if (status.stx_mask & STATX_BTIME) {
    *nanoseconds = status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
  }
  return 0;
}

int instar_file_flags(const char *path)
{
  struct statx status;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) != 0) return -1;
  const uint64_t flags = status.stx_attributes & status.stx_attributes_mask;
  return (flags & STATX_ATTR_IMMUTABLE ? INSTAR_FILE_IMMUTABLE : 0)
    | (flags & STATX_ATTR_APPEND ? INSTAR_FILE_APPEND_ONLY : 0)
    | (flags & STATX_ATTR_MOUNT_ROOT ? INSTAR_FILE_MOUNT_POINT : 0)
    | (lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0 ? INSTAR_FILE_ACCESS_LIST : 0);
}

uint64_t instar_device(uint32_t major_number, uint32_t minor_number)
{
  return makedev(major_number, minor_number);
}

int instar_is_open(const char *path)
{
  int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return errno == EWOULDBLOCK ? 1 : -1;
  /* What the kernel sends for a process that opens the file right now. SIGIO, the default, would end this process;
   * SIGURG is ignored. */
  int result = -1;
  if (fcntl(descriptor, F_SETSIG, SIGURG) == 0) {
    if (fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0) {
      result = 0;
    } else if (errno == EAGAIN) {
      result = 1;
    }
  }
  int code = errno;
  close(descriptor);
  errno = code;
  return result;
}

int instar_clone_file(int target, int source) { return ioctl(target, FICLONE, source); }

ssize_t instar_copy_range(int target, int source, off_t *offset, size_t bytes) {
  off_t to = *offset;
  return copy_file_range(source, offset, target, &to, bytes, 0);
}
