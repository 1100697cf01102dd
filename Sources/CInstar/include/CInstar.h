/* The few lines of C that Swift cannot import, or that must run before Swift does. */
#ifndef CINSTAR_H
#define CINSTAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Confinement.c: the rights that a worker drops before it loads a plugin ---- */

struct instar_confinement {
  /* The process that must still be the parent once the death signal is set; 0: whoever is the
   * parent now. */
  pid_t parent;
  /* The only folder that may be written, or NULL. */
  const char *clone_folder;
  /* Files and folders that may be read and mapped for execution; missing ones are left out. */
  const char *const *readable;
  size_t readable_count;
  /* The longest file that may be written, and the most private memory; 0: any. */
  uint64_t file_size_limit_bytes, memory_limit_bytes;
  /* How many threads may be started; 0: any. Not in force for root, but thread stacks are memory too. */
  unsigned thread_limit;
  /* Go on where the kernel has no Landlock. */
  int allow_unconfined;
};

enum instar_confinement_result {
  INSTAR_CONFINED = 0,
  /* The kernel has no Landlock. With `allow_unconfined` everything else is in force; without,
   * nothing was tried. */
  INSTAR_CONFINEMENT_UNAVAILABLE = 1,
  INSTAR_CONFINEMENT_FAILED = 2,
};

/* Confines the calling process for the rest of its life. Must run before there is a second
 * thread: a thread that exists already would go on without Landlock and seccomp, so that is a
 * failure. `problem` gets a sentence where the result is not INSTAR_CONFINED. What is confined:
 * see Confinement.c. */
enum instar_confinement_result instar_confine(
  const struct instar_confinement *confinement, char *problem, size_t problem_size);

/* ---- Spawn.c: starting a program, as this process's user or as another one ---- */

struct instar_identity {
  /* 0: the program keeps this process's user and groups, and loses its capabilities only. */
  int changes_user;
  uid_t uid;
  gid_t gid;
  const gid_t *groups;
  size_t group_count;
};

/* Starts a program in a process group of its own. Descriptors 0, 1 and 2 become `input`,
 * `output` and `error`; `channel` becomes 3 unless it is -1; no other is open. All signals are
 * unblocked and at their defaults.
 *
 * Without an `identity` (NULL) it runs with this process's rights. Else it runs as `identity` says,
 * in the folder "/", with no capability and with no way to get one (no_new_privs).
 *
 * Returns 0, or an errno: EPERM where this process may not become that user. */
int instar_spawn(
  const struct instar_identity *identity, const char *executable, char *const arguments[],
  char *const environment[], int input, int output, int error, int channel, pid_t *pid);

/* Whether this process may become any user (CAP_SETUID and CAP_SETGID in effect). */
int instar_may_change_user(void);

/* ---- ForkServer.c: children of a program that has loaded what they need ---- */

/* A connected pair of sockets that keep messages apart, both close-on-exec. 0; -1 and errno. */
int instar_packet_pair(int *one, int *other);

/* Has the server behind the socket fork a child in a process group of its own, with these arguments, each ended by a
 * NUL. Its descriptors 0 to 3 become `descriptors`. `*pid` is its number until instar_fork_reap; the server has one
 * child at a time. 0; -1 and errno: ECONNRESET where the server has ended. */
int instar_fork_start(
  int server, const char *arguments, size_t size, const int descriptors[4], pid_t *pid);

/* Kills what is left of the child's group, and reaps the child. `*code` is the exit status where `*signaled` is 0, else
 * the signal. 0; -1 and errno. */
int instar_fork_reap(int server, int *signaled, int *code);

/* The server: forks a child for each request on `channel`, which calls `run` with its arguments, the first of which is
 * the name of a program, and with the server's number, and exits with what that returns. The calling process dies with
 * `parent`, which must be the process at the other end. Returns the exit status when that has closed the channel; 1
 * where the process has a second thread, or the parent has ended. */
int instar_fork_serve(int channel, pid_t parent, int (*run)(int count, char *arguments[], pid_t server));

/* ---- SystemCalls.c: system calls without a wrapper in the C library of Debian 12, or variadic
 * ones ---- */

/* A descriptor that polls readable when the process has ended (pidfd_open(2)); close-on-exec. -1
 * and errno. */
int instar_pidfd_open(pid_t pid);
/* Sends a signal to the process behind the descriptor, never to one that got its number later. */
int instar_pidfd_send_signal(int pidfd, int signal);
/* Waits for the child behind the descriptor and reaps it. `*code` is the exit status where
 * `*signaled` is 0, else the signal. 0; -1 and errno. */
int instar_pidfd_wait(int pidfd, int *signaled, int *code);

/* ioprio_set(2) for the calling thread: turns at the disk only while nobody else wants it, or as
 * other programs with a `level` from 0 to 7. 0; -1 and errno. */
int instar_set_disk_priority(bool idle, int level);

/* accept4(2): a close-on-exec connection, or -1 and errno. */
int instar_accept(int listener);
/* Who made a connection, and the groups of that process, the primary one first. Returns their number; -1 and errno on
 * failure, ERANGE if there are more than `limit`. */
int instar_peer(int socket, pid_t *pid, uid_t *user, gid_t *groups, int limit);

/* From now on SIGINT, SIGTERM and a SIGHUP that was not ignored do not end the process; instar_is_canceled() tells
   whether one has arrived. */
void instar_observe_cancellation(void);
/* An eventfd(2) that is readable when one has arrived; the same for each call. -1 and errno on failure. */
int instar_cancellation_descriptor(void);
bool instar_is_canceled(void);

/* At most so many arenas of malloc(3). */
void instar_limit_arenas(int count);
/* Gives free memory back to the kernel. */
void instar_trim_memory(void);

/* A connected pair of stream sockets, both close-on-exec. 0; -1 and errno. */
int instar_stream_pair(int *one, int *other);
/* A pipe, both ends close-on-exec. 0; -1 and errno. */
int instar_pipe(int *read_end, int *write_end);

/* Orphaned descendants become children of this process (prctl(2), PR_SET_CHILD_SUBREAPER). 0; -1 and errno. */
int instar_adopt_orphans(void);

/* Names the calling thread, with 15 bytes at most. */
void instar_name_thread(const char *name);

/* An empty file in memory (memfd_create(2)), close-on-exec. -1 and errno. */
int instar_memory_file(void);
/* From now on nobody can change the file. 0; -1 and errno. */
int instar_seal(int descriptor);

/* renameat2(2) with RENAME_EXCHANGE and RENAME_NOREPLACE. 0; -1 and errno. */
int instar_rename_exchange(int folder, const char *old_name, int new_folder, const char *new_name);
int instar_rename_no_replace(
  int folder, const char *old_name, int new_folder, const char *new_name);

/* Has the kernel begin to write the changed pages of a file to disk (sync_file_range(2)). 0; -1 and errno. */
int instar_start_writing(int descriptor);

/* Device and inode of the file that an absolute path names, resolved without following any
 * symbolic link (openat2(2) with RESOLVE_NO_SYMLINKS, or O_NOFOLLOW at each step). Of a link at the
 * end: its own. The file is not opened: no lock on it is dropped. 0; -1 and errno, ELOOP or ENOTDIR
 * where there is a link on the way. */
int instar_status_without_links(const char *path, uint64_t *device, uint64_t *inode);

/* When the file of a path was created, in nanoseconds since 1970; 0 where its file system does not
 * say (statx(2)). Follows no link at the end. 0; -1 and errno. */
int instar_creation_time(const char *path, int64_t *nanoseconds);

/* Flags of the file that a path names (statx(2), getxattr(2)), where its file system knows them; no link at
 * the end is followed. -1 and errno. */
enum {
  INSTAR_FILE_IMMUTABLE = 1,
  INSTAR_FILE_APPEND_ONLY = 2,
  INSTAR_FILE_MOUNT_POINT = 4,
  INSTAR_FILE_ACCESS_LIST = 8,
};
int instar_file_flags(const char *path);

/* The device of two numbers, as stat(2) gives it. */
uint64_t instar_device(uint32_t major_number, uint32_t minor_number);

/* Whether another process, or this one, has the file open: asks for a lease on it (fcntl(2)), and
 * releases that at once. Opens and closes the file, which drops this process's POSIX locks on it.
 * Needs to be the file's owner. 1 or 0; -1 and errno where the kernel does not answer. */
int instar_is_open(const char *path);

/* Shares the blocks of `source` with the empty file `target` (ioctl FICLONE). 0; -1 and errno. */
int instar_clone_file(int target, int source);

/* Copies bytes that begin at `offset` of `source` to the same offset of `target` (copy_file_range(2)), and adds their number
 * to `offset`. That number; -1 and errno. */
ssize_t instar_copy_range(int target, int source, off_t *offset, size_t bytes);

/* ---- Exchange.c: what a cutover by exchange needs of two files ---- */

/* Whether leases, locks and renames of the folder's file system are those of this kernel alone, and
 * it can exchange two files in one step: of ext4, XFS, Btrfs, F2FS and tmpfs that is known. */
int instar_may_exchange(const char *folder);

/* Takes a write lease (F_SETLEASE of fcntl(2)) on a file that is open for writing, or takes it
 * again. Succeeds only where no other description of the file is open, in any process. While it is
 * held, whoever opens the file waits in open(2), for 45 seconds at most
 * (/proc/sys/fs/lease-break-time). The lease belongs to the description: it ends with the last
 * descriptor. 0; -1 and errno. */
int instar_lease(int descriptor);
/* Whether the lease is held, and nobody waits to open the file. */
int instar_lease_is_unbroken(int descriptor);
void instar_lease_release(int descriptor);

/* Locks the bytes by which SQLite locks a database, for this description (F_OFD_SETLK): no SQLite
 * can read or write the file by another one. 0; -1 and errno. */
int instar_lock_database(int descriptor);
/* Whether another description has the lock of `instar_lock_database`. */
int instar_is_database_locked(int descriptor);

/* Starts the process 'instar-lock', which keeps the lock of a description until the kernel grants a lease of it: until
 * nobody else has the file open. Then it ends. It outlives this process, has no other descriptor and a session of its
 * own. 0; -1 and errno. */
int instar_keep_lock(int descriptor);

/* Gives a file owner, group, mode, access control list and all other extended attributes of
 * another, and no more than those. 0; -1 and errno, also where the two differ in a flag of
 * chattr(1). */
int instar_copy_attributes(int source, int target);

/* ---- Swift's runtime ---- */

/* Whether a Swift object is being freed (swift/include/swift/Runtime/HeapObject.h). Swift has no
 * other name for it. */
bool swift_isDeallocating(void *object);

#ifdef __cplusplus
}
#endif

#endif
