/* SQLite opens files by name, some time after they were checked. So the system calls by which it opens, creates,
 * truncates, removes or locks a file are replaced here (sqlite3_vfs.xSetSystemCall). So are those by which it reads and writes. */
#define _GNU_SOURCE
#include "CDatabase.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

struct guard {
  const char *path;
  unsigned long long device, inode;
  int met_other_file;
};

static __thread struct guard guard;

/* Returns the part of a name after the guarded path; NULL where the name does not begin with it. */
static const char *after_guarded_path(const char *name) {
  size_t length = strlen(guard.path);
  return strncmp(name, guard.path, length) == 0 ? name + length : NULL;
}

static int may_open(const char *name, int *flags) {
  if (strcmp(name, "/dev/urandom") == 0) return 1;
  const char *rest = after_guarded_path(name);
  if (!rest) return 0;
  int is_store = rest[0] == 0;
  int is_shared_memory = strcmp(rest, "-shm") == 0;
  if (!is_store && !is_shared_memory && strcmp(rest, "-wal") != 0 && strcmp(rest, "-journal") != 0)
    return 0;
  *flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
  if (!is_shared_memory) *flags = (*flags & ~O_ACCMODE) | O_RDONLY;
  return 1;
}

int instar_open_waiting(const char *name, int flags, int mode) {
  enum { INTERVAL_MICROSECONDS = 5000, ATTEMPTS = 400 };
  int descriptor = -1;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    descriptor = open(name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EWOULDBLOCK) break;
    usleep(INTERVAL_MICROSECONDS);
  }
  return descriptor;
}

static int guarded_open(const char *name, int flags, int mode) {
  if (guard.path && !may_open(name, &flags)) {
    errno = EACCES;
    return -1;
  }
  int descriptor = instar_open_waiting(name, flags, mode);
  if (descriptor < 0) return descriptor;
  struct stat status;
  int is_allowed = fstat(descriptor, &status) == 0 &&
                   (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ||
                    (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 9)));
  if (is_allowed && guard.path && strcmp(name, guard.path) == 0 &&
      (status.st_dev != guard.device || status.st_ino != guard.inode)) {
    guard.met_other_file = 1;
    is_allowed = 0;
  }
  if (!is_allowed) {
    close(descriptor);
    errno = EACCES;
    return -1;
  }
  return descriptor;
}

static int guarded_unlink(const char *name) {
  if (guard.path) {
    errno = EROFS;
    return -1;
  }
  return unlink(name);
}

static int guarded_ftruncate(int descriptor, off_t size) {
  if (guard.path) {
    errno = EROFS;
    return -1;
  }
  return ftruncate(descriptor, size);
}

int instar_lock_shared(int descriptor)
{
  /* PENDING_BYTE keeps new readers out while a writer waits; SHARED_FIRST and SHARED_SIZE are the lock itself. */
  enum { PENDING_BYTE = 0x40000000, SHARED_FIRST = PENDING_BYTE + 2, SHARED_SIZE = 510 };
  struct flock pending = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PENDING_BYTE, .l_len = 1};
  struct flock shared = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = SHARED_FIRST, .l_len = SHARED_SIZE};
  /* A lock of the description: one of the process would end when any thread closes the file. */
  if (fcntl(descriptor, F_OFD_SETLK, &pending) < 0) return -1;
  int code = fcntl(descriptor, F_OFD_SETLK, &shared);
  pending.l_type = F_UNLCK;
  if (fcntl(descriptor, F_OFD_SETLK, &pending) < 0) return -1;
  return code < 0 ? -1 : 0;
}

static __thread unsigned failed_reads;

unsigned instar_failed_reads(void) { return failed_reads; }

/* SQLite takes these errors for those of a damaged file (SQLITE_IOERR_CORRUPTFS), and a statement that meets one reports
 * SQLITE_CORRUPT. But the disk may have failed for a moment only. With any other number SQLite reports a failed read. */
static ssize_t has_read(ssize_t result) {
  /* SQLite repeats an interrupted read. */
  if (result < 0 && errno != EINTR) {
    failed_reads++;
    if (errno == EIO || errno == ENXIO || errno == ERANGE) errno = EREMOTEIO;
  }
  return result;
}

static ssize_t guarded_read(int descriptor, void *bytes, size_t count) {
  return has_read(read(descriptor, bytes, count));
}

static ssize_t guarded_pread(int descriptor, void *bytes, size_t count, off_t offset) {
  return has_read(pread(descriptor, bytes, count, offset));
}

static ssize_t guarded_pread64(int descriptor, void *bytes, size_t count, off64_t offset) {
  return has_read(pread64(descriptor, bytes, count, offset));
}

static __thread int reason_of_full_disk;

/* A write that succeeds does not clear it: before SQLite reports the failure, it writes back what the statement changed. */
int instar_take_reason_of_full_disk(void) {
  const int reason = reason_of_full_disk;
  reason_of_full_disk = 0;
  return reason;
}

/* SQLite knows a full disk by ENOSPC alone. It takes a quota that is used up, and a file of the greatest size that the
 * process may write, for a disk that fails. */
static ssize_t full(ssize_t result) {
  if (result < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    reason_of_full_disk = errno;
    errno = ENOSPC;
  }
  return result;
}

static ssize_t guarded_write(int descriptor, const void *bytes, size_t count) {
  return full(write(descriptor, bytes, count));
}

static ssize_t guarded_pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  return full(pwrite(descriptor, bytes, count, offset));
}

static ssize_t guarded_pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  return full(pwrite64(descriptor, bytes, count, offset));
}

/* The first of the eight locks in shared memory (os_unix.c, UNIX_SHM_BASE and WAL_WRITE_LOCK). */
enum { WRITE_LOCK_BYTE = 120 };

static __thread int keeps_write_lock;

static int guarded_fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (keeps_write_lock && command == F_SETLK) {
    const struct flock *lock = argument;
    if (lock->l_type == F_UNLCK && lock->l_start == WRITE_LOCK_BYTE && lock->l_len == 1) return 0;
  }
  return fcntl(descriptor, command, argument);
}

void instar_keep_write_lock(int on) { keeps_write_lock = on; }

int instar_guard_install(void) {
  sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");
  if (!unix_vfs || unix_vfs->iVersion < 3 || !unix_vfs->xSetSystemCall) return SQLITE_ERROR;
  int code = unix_vfs->xSetSystemCall(unix_vfs, "open", (sqlite3_syscall_ptr)guarded_open);
  if (code == SQLITE_OK)
    code = unix_vfs->xSetSystemCall(unix_vfs, "unlink", (sqlite3_syscall_ptr)guarded_unlink);
  if (code == SQLITE_OK)
    code = unix_vfs->xSetSystemCall(unix_vfs, "ftruncate", (sqlite3_syscall_ptr)guarded_ftruncate);
  if (code == SQLITE_OK)
    code = unix_vfs->xSetSystemCall(unix_vfs, "fcntl", (sqlite3_syscall_ptr)guarded_fcntl);
  instar_distinguish_errors();
  return code;
}

void instar_distinguish_errors(void) {
  sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");
  if (!unix_vfs || unix_vfs->iVersion < 3 || !unix_vfs->xSetSystemCall) return;
  /* SQLite was compiled to use one of these. */
  unix_vfs->xSetSystemCall(unix_vfs, "read", (sqlite3_syscall_ptr)guarded_read);
  unix_vfs->xSetSystemCall(unix_vfs, "pread", (sqlite3_syscall_ptr)guarded_pread);
  unix_vfs->xSetSystemCall(unix_vfs, "pread64", (sqlite3_syscall_ptr)guarded_pread64);
  unix_vfs->xSetSystemCall(unix_vfs, "write", (sqlite3_syscall_ptr)guarded_write);
  unix_vfs->xSetSystemCall(unix_vfs, "pwrite", (sqlite3_syscall_ptr)guarded_pwrite);
  unix_vfs->xSetSystemCall(unix_vfs, "pwrite64", (sqlite3_syscall_ptr)guarded_pwrite64);
}

void instar_guard_enter(const char *path, unsigned long long device, unsigned long long inode) {
  guard.path = path;
  guard.device = device;
  guard.inode = inode;
  guard.met_other_file = 0;
}

int instar_guard_leave(void) {
  guard.path = NULL;
  return guard.met_other_file;
}
