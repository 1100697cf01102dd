#define _GNU_SOURCE
#include "CInstar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

int instar_may_exchange(const char *folder)
{
  struct statfs status;
  if (statfs(folder, &status) < 0) return 0;
  switch (status.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC: return 1;
    default: return 0;
  }
}

int instar_lease(int descriptor)
{
  /* What the kernel sends when somebody opens the file. SIGIO, the default, would end this process; SIGURG is
   * ignored: the lease is asked instead. */
  if (fcntl(descriptor, F_SETSIG, SIGURG) < 0) return -1;
  return fcntl(descriptor, F_SETLEASE, F_WRLCK) < 0 ? -1 : 0;
}

int instar_lease_is_unbroken(int descriptor)
{
  /* The second call counts the openers: it also knows of one that fanotify holds up before the
   * lease can. */
  return fcntl(descriptor, F_GETLEASE) == F_WRLCK && fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0;
}

void instar_lease_release(int descriptor) { fcntl(descriptor, F_SETLEASE, F_UNLCK); }

/* PENDING_BYTE, RESERVED_BYTE and the range of SHARED_FIRST (os.h of SQLite). */
static const struct flock lock_bytes = {
  .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};

int instar_lock_database(int descriptor)
{
  struct flock bytes = lock_bytes;
  return fcntl(descriptor, F_OFD_SETLK, &bytes) < 0 ? -1 : 0;
}

int instar_is_database_locked(int descriptor)
{
  struct flock bytes = lock_bytes;
  /* SQLite's own locks belong to a process, and have its number. */
  return fcntl(descriptor, F_OFD_GETLK, &bytes) == 0 && bytes.l_type == F_WRLCK && bytes.l_pid == -1
    && bytes.l_start == lock_bytes.l_start && bytes.l_len == lock_bytes.l_len;
}

static int close_others(int descriptor)
{
  const unsigned own = (unsigned)descriptor;
  if (own > 0 && syscall(SYS_close_range, 0U, own - 1, 0U) < 0) return -1;
  return syscall(SYS_close_range, own + 1, ~0U, 0U) < 0 ? -1 : 0;
}

/* The process that keeps the lock. */
static void keep_lock(int descriptor)
{
  prctl(PR_SET_NAME, "instar-lock");
  const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
  while (instar_lease(descriptor) < 0) nanosleep(&pause, NULL);
  _exit(0);
}

int instar_keep_lock(int descriptor)
{
  const pid_t first = _Fork();
  if (first < 0) return -1;
  if (first == 0) {
    /* Only what is safe after a fork of a process with threads. In a group of its own, because this process's group is
     * killed when it ends; without its other descriptors and its folder, which somebody may wait for. */
    if (setsid() < 0 || close_others(descriptor) < 0 || chdir("/") < 0) _exit(1);
    const pid_t second = _Fork();
    if (second == 0) keep_lock(descriptor);
    _exit(second < 0);
  }
  int status = 0;
  while (waitpid(first, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  errno = EAGAIN;
  return -1;
}

/* ---- Attributes ---- */

/* The most that the kernel gives (XATTR_LIST_MAX, XATTR_SIZE_MAX). */
enum { LONGEST = 65536 };

struct attribute_buffers {
  char names[LONGEST], value[LONGEST], other_value[LONGEST];
};

/* A checksum of the file's content, which only the kernel can make. */
static int is_of_content(const char *name)
{
  return strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0;
}

static int copy_extended(int source, int target, struct attribute_buffers *buffers)
{
  ssize_t length = flistxattr(source, buffers->names, LONGEST);
  if (length < 0) return errno == ENOTSUP ? 0 : -1;
  for (char *name = buffers->names; name < buffers->names + length; name += strlen(name) + 1) {
    if (is_of_content(name)) {
      errno = ENOTSUP;
      return -1;
    }
    const ssize_t size = fgetxattr(source, name, buffers->value, LONGEST);
    if (size < 0) return -1;
    const ssize_t present = fgetxattr(target, name, buffers->other_value, LONGEST);
    if (present == size && memcmp(buffers->value, buffers->other_value, (size_t)size) == 0) continue;
    if (fsetxattr(target, name, buffers->value, (size_t)size, 0) < 0) return -1;
  }
  return 0;
}

/* Removes what the folder of the target gave it, such as a default access control list. */
static int remove_others(int source, int target, struct attribute_buffers *buffers)
{
  ssize_t length = flistxattr(target, buffers->names, LONGEST);
  if (length < 0) return errno == ENOTSUP ? 0 : -1;
  for (char *name = buffers->names; name < buffers->names + length; name += strlen(name) + 1) {
    if (fgetxattr(source, name, NULL, 0) >= 0) continue;
    if (fremovexattr(target, name) < 0) return -1;
  }
  return 0;
}

/* Whether both files have the flags of chattr(1) that a person may have set. */
static int have_same_flags(int source, int target)
{
  unsigned int from = 0, to = 0;
  if (ioctl(source, FS_IOC_GETFLAGS, &from) < 0) return errno == ENOTTY || errno == EOPNOTSUPP;
  if (ioctl(target, FS_IOC_GETFLAGS, &to) < 0) return 0;
  /* Set by ext4 itself: how it stores the content. */
  const unsigned int by_system = FS_EXTENT_FL | FS_INLINE_DATA_FL;
  if (((from ^ to) & ~by_system) == 0) return 1;
  errno = ENOTSUP;
  return 0;
}

int instar_copy_attributes(int source, int target)
{
  struct stat from, to;
  if (fstat(source, &from) < 0 || fstat(target, &to) < 0) return -1;
  if (!have_same_flags(source, target)) return -1;
  if ((from.st_uid != to.st_uid || from.st_gid != to.st_gid)
      && fchown(target, from.st_uid, from.st_gid) < 0) {
    return -1;
  }
  struct attribute_buffers *buffers = malloc(sizeof *buffers);
  if (!buffers) return -1;
  int result = copy_extended(source, target, buffers);
  if (result == 0) result = remove_others(source, target, buffers);
  const int problem = errno;
  free(buffers);
  errno = problem;
  /* Last: a change of owner or of access control list changes the mode. */
  return result == 0 ? fchmod(target, from.st_mode & 07777) : -1;
}
