/* The rights that a worker drops before it loads a plugin, in order.
 *
 * A plugin is code that somebody else wrote; its constructors run the moment it is loaded. It
 * gets a private copy of a store and may do with it what it likes. It must not reach the store
 * itself, other files, the network or other processes, and nothing that it starts may outlive
 * the worker: the keeper kills the worker and then relies on the clone not changing any more.
 *
 *   1. the worker dies with its keeper (PR_SET_PDEATHSIG)
 *   2. no descriptor beyond 0-3 is open
 *   3. resource limits, no_new_privs, no capabilities but those to open files
 *   4. Landlock: which files can be opened and how
 *   5. seccomp, for what Landlock does not cover: no process, no socket, no signal to others, and no
 *      change of mode, owner, times or attributes of files
 *
 * Landlock and seccomp cover a thread and what it starts. That is why there must be no second
 * thread yet. */
#define _GNU_SOURCE
#include "CInstar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the confinement of workers is written for x86_64 and aarch64"
#endif

/* Describes a problem, and returns the result for it. */
static enum instar_confinement_result __attribute__((format(printf, 3, 4)))
failed(char *problem, size_t size, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, size, format, arguments);
  va_end(arguments);
  return INSTAR_CONFINEMENT_FAILED;
}

/* ---- Landlock ----
 *
 * The numbers are those of <linux/landlock.h>; they are written out because the header of Debian
 * 12 ends at ABI 2, and the kernel that runs decides what is there. */

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_ALL_OF_ABI_1 ((1ULL << 13) - 1)
#define FS_REFER (1ULL << 13)     /* ABI 2: rename and link between folders */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */

#define NET_BIND_TCP (1ULL << 0) /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)

#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)

/* A kernel that knows less takes the longer structure as long as what it does not know is zero. */
struct ruleset_attribute {
  uint64_t handled_access_fs, handled_access_net, scoped;
};

struct path_beneath_attribute {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

#define CREATE_RULESET_VERSION 1
#define RULE_PATH_BENEATH 1

static int landlock_abi(void)
{
  return (int)syscall(444 /* landlock_create_ruleset */, NULL, 0, CREATE_RULESET_VERSION);
}

/* Allows `access` below `path`. 0; -1 and errno. */
static int allow_below(int ruleset, const char *path, uint64_t access)
{
  struct path_beneath_attribute rule = {.allowed_access = access};
  rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
  if (rule.parent_fd < 0) return -1;

  struct stat status;
  int result = fstat(rule.parent_fd, &status);
  if (result == 0) {
    /* A file takes only the rights that mean something for a file. */
    if (!S_ISDIR(status.st_mode)) {
      rule.allowed_access &=
        FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV;
    }
    result = (int)syscall(445 /* landlock_add_rule */, ruleset, RULE_PATH_BENEATH, &rule, 0);
  }
  int problem = errno;
  close(rule.parent_fd);
  errno = problem;
  return result;
}

/* Lets a ruleset allow what `confinement` names. */
static enum instar_confinement_result allow_files(
  const struct instar_confinement *confinement, int ruleset, uint64_t handled, char *problem,
  size_t size)
{
  /* No symbolic links, FIFOs, sockets or devices: a clone folder has no use for them. */
  const uint64_t write =
    handled & (FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_DIR | FS_MAKE_REG
               | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_REFER);
  if (confinement->clone_folder && allow_below(ruleset, confinement->clone_folder, write) < 0)
    return failed(
      problem, size, "cannot let the worker write the clone folder '%s': %s", confinement->clone_folder,
      strerror(errno));
  /* libdispatch reads /proc/TID/stat of its threads, and traps where it cannot; the C library
   * reads /proc/self/maps. Which folders those are is not known yet, so it is all of /proc:
   * files by their name, without listing it, and never for writing. What is private to other
   * processes there (memory, environment, files) the kernel keeps from a process under Landlock;
   * what belongs to the kernel needs capabilities that the worker has dropped. */
  if (allow_below(ruleset, "/proc", FS_READ_FILE) < 0 && errno != ENOENT)
    return failed(problem, size, "cannot let the worker read /proc: %s", strerror(errno));
  for (size_t i = 0; i < confinement->readable_count; i++) {
    const char *path = confinement->readable[i];
    if (allow_below(ruleset, path, FS_READ_FILE | FS_READ_DIR | FS_EXECUTE) < 0
        && errno != ENOENT)
      return failed(problem, size, "cannot let the worker read '%s': %s", path, strerror(errno));
  }
  return INSTAR_CONFINED;
}

static enum instar_confinement_result restrict_files(
  const struct instar_confinement *confinement, int abi, char *problem, size_t size)
{
  uint64_t handled = FS_ALL_OF_ABI_1;
  if (abi >= 2) handled |= FS_REFER;
  if (abi >= 3) handled |= FS_TRUNCATE;
  if (abi >= 5) handled |= FS_IOCTL_DEV;
  struct ruleset_attribute attribute = {
    .handled_access_fs = handled,
    .handled_access_net = abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
    .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
  };
  int ruleset = (int)syscall(444 /* landlock_create_ruleset */, &attribute, sizeof attribute, 0);
  if (ruleset < 0)
    return failed(problem, size, "landlock_create_ruleset: %s", strerror(errno));
  enum instar_confinement_result result =
    allow_files(confinement, ruleset, handled, problem, size);
  if (result == INSTAR_CONFINED && syscall(446 /* landlock_restrict_self */, ruleset, 0) < 0)
    result = failed(problem, size, "landlock_restrict_self: %s", strerror(errno));
  close(ruleset);
  return result;
}

/* ---- seccomp ---- */

#define REFUSE(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low half of an argument; both architectures are little-endian. Every argument checked is
 * an int, or has all its meaning in the low half. */
#define LOAD_ARGUMENT(number) LOAD(args[number])
/* `then` and `otherwise` are how many instructions to leave out. */
#define WHEN_EQUAL(value, then, otherwise) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (then), (otherwise))
#define WHEN_ANY_BIT(bits, then, otherwise) \
  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (then), (otherwise))
#define DENY(call) WHEN_EQUAL((call), 0, 1), REFUSE(EPERM)
#define ANSWER(call, error) WHEN_EQUAL((call), 0, 1), REFUSE(error)

/* Allowed for the calling process only, which its first argument names by its number, or by 0. */
#define OWN_PROCESS_ONLY(call, own) \
  WHEN_EQUAL((call), 0, 4), LOAD_ARGUMENT(0), WHEN_EQUAL((own), 0, 1), ALLOW, REFUSE(EPERM)
#define OWN_PROCESS_OR_ZERO(call, own) \
  WHEN_EQUAL((call), 0, 5), LOAD_ARGUMENT(0), WHEN_EQUAL(0, 1, 0), WHEN_EQUAL((own), 0, 1), ALLOW, \
    REFUSE(EPERM)

/* The last system call reviewed for this list; later ones are answered as
 * unknown. Also keeps out the x32 calls of x86_64, whose numbers begin at 2^30. */
#define LAST_CALL_REVIEWED 451

static int install_filter(void)
{
  const uint32_t own = (uint32_t)getpid();
  struct sock_filter instructions[] = {
    LOAD(arch),
    WHEN_EQUAL(THIS_ARCHITECTURE, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_CALL_REVIEWED, 0, 1),
    REFUSE(ENOSYS),

    /* Threads yes, processes no. Without clone3, whose arguments a filter cannot see, the C
     * library uses clone. */
    WHEN_EQUAL(__NR_clone, 0, 4),
    LOAD_ARGUMENT(0),
    WHEN_ANY_BIT(CLONE_THREAD, 0, 1),
    ALLOW,
    REFUSE(EPERM),
    ANSWER(435 /* clone3 */, ENOSYS),
#ifdef __NR_fork
    DENY(__NR_fork),
    DENY(__NR_vfork),
#endif
    DENY(__NR_execve),
    DENY(__NR_execveat),

    /* Signals: to itself only. The file owner that SIGIO goes to is another way of sending one. */
    OWN_PROCESS_ONLY(__NR_kill, own),
    OWN_PROCESS_ONLY(__NR_tgkill, own),
    OWN_PROCESS_ONLY(__NR_rt_sigqueueinfo, own),
    OWN_PROCESS_ONLY(__NR_rt_tgsigqueueinfo, own),
    DENY(__NR_tkill),
    DENY(424 /* pidfd_send_signal */),
    WHEN_EQUAL(__NR_fcntl, 0, 6),
    LOAD_ARGUMENT(1),
    WHEN_EQUAL(F_SETOWN, 3, 0),
    WHEN_EQUAL(F_SETSIG, 2, 0),
    WHEN_EQUAL(F_SETOWN_EX, 1, 0),
    ALLOW,
    REFUSE(EPERM),
    /* Only questions; among the others are a file's flags, and the owner of a socket. */
    WHEN_EQUAL(__NR_ioctl, 0, 6),
    LOAD_ARGUMENT(1),
    WHEN_EQUAL(TCGETS, 2, 0),
    WHEN_EQUAL(TIOCGWINSZ, 1, 0),
    WHEN_EQUAL(FIONREAD, 0, 1),
    ALLOW,
    REFUSE(ENOTTY),

    /* The group that the keeper kills, and the signal that comes with the keeper's death. */
    DENY(__NR_setsid),
    DENY(__NR_setpgid),
    WHEN_EQUAL(__NR_prctl, 0, 4),
    LOAD_ARGUMENT(0),
    WHEN_EQUAL(PR_SET_PDEATHSIG, 0, 1),
    REFUSE(EPERM),
    ALLOW,

    /* Limits and priorities: its own only. */
    OWN_PROCESS_OR_ZERO(__NR_prlimit64, own),
    OWN_PROCESS_OR_ZERO(__NR_sched_setaffinity, own),
    OWN_PROCESS_OR_ZERO(__NR_sched_setscheduler, own),
    OWN_PROCESS_OR_ZERO(__NR_sched_setparam, own),
    OWN_PROCESS_OR_ZERO(__NR_sched_setattr, own),
    /* libdispatch sets the priority of each of its threads: of the calling one only. */
    WHEN_EQUAL(__NR_setpriority, 0, 6),
    LOAD_ARGUMENT(0),
    WHEN_EQUAL(PRIO_PROCESS, 0, 3),
    LOAD_ARGUMENT(1),
    WHEN_EQUAL(0, 0, 1),
    ALLOW,
    REFUSE(EPERM),
    DENY(__NR_ioprio_set),

    /* Other processes' memory and descriptors. */
    DENY(__NR_ptrace),
    DENY(__NR_process_vm_readv),
    DENY(__NR_process_vm_writev),
    DENY(__NR_kcmp),
    DENY(__NR_migrate_pages),
    DENY(__NR_move_pages),
    DENY(438 /* pidfd_getfd */),
    DENY(440 /* process_madvise */),
    DENY(448 /* process_mrelease */),

    /* Sockets and other ways to talk. Descriptor 3 is there already. */
    DENY(__NR_socket),
    DENY(__NR_socketpair),
    DENY(__NR_connect),
    DENY(__NR_bind),
    DENY(__NR_listen),
    DENY(__NR_accept),
    DENY(__NR_accept4),
    DENY(__NR_shmget),
    DENY(__NR_msgget),
    DENY(__NR_semget),
    DENY(__NR_mq_open),
    DENY(__NR_mq_unlink),

    /* What Landlock lets through: mode, owner, times and attributes of files; handles; and
     * truncation, which it knows only from ABI 3 on. */
#ifdef __NR_chmod
    DENY(__NR_chmod),
    DENY(__NR_chown),
    DENY(__NR_lchown),
    DENY(__NR_utime),
    DENY(__NR_utimes),
    DENY(__NR_futimesat),
#endif
    DENY(__NR_fchmod),
    DENY(__NR_fchmodat),
    DENY(__NR_fchown),
    DENY(__NR_fchownat),
    DENY(__NR_utimensat),
    DENY(__NR_setxattr),
    DENY(__NR_lsetxattr),
    DENY(__NR_fsetxattr),
    DENY(__NR_removexattr),
    DENY(__NR_lremovexattr),
    DENY(__NR_fremovexattr),
    DENY(__NR_name_to_handle_at),
    DENY(__NR_open_by_handle_at),
    DENY(__NR_truncate),
#ifdef __NR_open
    DENY(__NR_creat),
    WHEN_EQUAL(__NR_open, 0, 6),
    LOAD_ARGUMENT(1),
    WHEN_ANY_BIT(O_TRUNC, 0, 3),
    WHEN_ANY_BIT(O_ACCMODE, 0, 1),
    ALLOW,
    REFUSE(EPERM),
    ALLOW,
#endif
    WHEN_EQUAL(__NR_openat, 0, 6),
    LOAD_ARGUMENT(2),
    WHEN_ANY_BIT(O_TRUNC, 0, 3),
    WHEN_ANY_BIT(O_ACCMODE, 0, 1),
    ALLOW,
    REFUSE(EPERM),
    ALLOW,
    ANSWER(437 /* openat2 */, ENOSYS), /* its flags are out of a filter's sight */

    /* Wide doors in the kernel. */
    DENY(__NR_io_setup),
    DENY(425 /* io_uring_setup */),
    DENY(426 /* io_uring_enter */),
    DENY(427 /* io_uring_register */),
    DENY(__NR_bpf),
    DENY(__NR_perf_event_open),
    DENY(__NR_userfaultfd),
    DENY(__NR_keyctl),
    DENY(__NR_add_key),
    DENY(__NR_request_key),
    DENY(__NR_fanotify_init),
    DENY(__NR_quotactl),
    DENY(443 /* quotactl_fd */),
    DENY(__NR_syslog),

    /* What only root can do: a keeper may run as root. */
    DENY(__NR_mount),
    DENY(__NR_umount2),
    DENY(__NR_pivot_root),
    DENY(__NR_chroot),
    DENY(__NR_setns),
    DENY(__NR_unshare),
    DENY(428 /* open_tree */),
    DENY(429 /* move_mount */),
    DENY(430 /* fsopen */),
    DENY(431 /* fsconfig */),
    DENY(432 /* fsmount */),
    DENY(433 /* fspick */),
    DENY(442 /* mount_setattr */),
    DENY(__NR_kexec_load),
    DENY(__NR_kexec_file_load),
    DENY(__NR_init_module),
    DENY(__NR_finit_module),
    DENY(__NR_delete_module),
    DENY(__NR_reboot),
    DENY(__NR_swapon),
    DENY(__NR_swapoff),
    DENY(__NR_acct),
    DENY(__NR_vhangup),
    DENY(__NR_settimeofday),
    DENY(__NR_clock_settime),
    DENY(__NR_clock_adjtime),
    DENY(__NR_adjtimex),
    DENY(__NR_sethostname),
    DENY(__NR_setdomainname),
#ifdef __NR_iopl
    DENY(__NR_iopl),
    DENY(__NR_ioperm),
#endif
    DENY(__NR_setuid),
    DENY(__NR_setgid),
    DENY(__NR_setreuid),
    DENY(__NR_setregid),
    DENY(__NR_setresuid),
    DENY(__NR_setresgid),
    DENY(__NR_setfsuid),
    DENY(__NR_setfsgid),
    DENY(__NR_setgroups),
    DENY(__NR_capset),

    ALLOW,
  };
  struct sock_fprog program = {
    .len = sizeof instructions / sizeof instructions[0],
    .filter = instructions,
  };
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* ---- capabilities ---- */

/* Of what makes root root, keeps the reading and writing of other people's files, within
 * Landlock's bounds: a keeper that runs as root works on stores and plugins of others. */
static int drop_capabilities(void)
{
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  if (syscall(SYS_capget, &header, sets) < 0) return -1;
  const uint32_t kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH | 1U << CAP_FOWNER;
  sets[0].effective &= kept;
  sets[0].permitted &= kept;
  sets[0].inheritable = 0;
  sets[1].effective = sets[1].permitted = sets[1].inheritable = 0;
  return (int)syscall(SYS_capset, &header, sets);
}

/* ---- limits ---- */

/* Returns how many threads of this user exist. RLIMIT_NPROC counts them all. */
static rlim_t threads_of_user(void)
{
  DIR *processes = opendir("/proc");
  if (!processes) return 0;
  rlim_t count = 0;
  for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%.20s/task", entry->d_name);
    /* A folder has a link for each folder in it, and two more. */
    if (stat(path, &status) == 0 && status.st_uid == getuid() && status.st_nlink > 2)
      count += status.st_nlink - 2;
  }
  closedir(processes);
  return count;
}

/* ---- all of it ---- */

static int limit(int resource, rlim_t value)
{
  struct rlimit limits;
  if (getrlimit(resource, &limits) < 0) return -1;
  if (limits.rlim_max != RLIM_INFINITY && limits.rlim_max < value) value = limits.rlim_max;
  limits.rlim_cur = limits.rlim_max = value;
  return setrlimit(resource, &limits);
}

enum instar_confinement_result instar_confine(
  const struct instar_confinement *confinement, char *problem, size_t size)
{
  /* unshare(2): CLONE_THREAD has no effect in a process of one thread, and fails in any other. */
  if (unshare(CLONE_THREAD) < 0)
    return failed(
      problem, size, "a thread was started before the confinement; it would not be confined");
  const int abi = landlock_abi();
  if (abi < 1 && !confinement->allow_unconfined) {
    failed(problem, size, "the kernel has no Landlock, or it is switched off (%s)", strerror(errno));
    return INSTAR_CONFINEMENT_UNAVAILABLE;
  }

  const pid_t parent = confinement->parent ? confinement->parent : getppid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
    return failed(problem, size, "PR_SET_PDEATHSIG: %s", strerror(errno));
  if (getppid() != parent)
    return failed(problem, size, "the process that started the worker has ended");
  if (syscall(436 /* close_range */, 4U, ~0U, 0U) < 0)
    return failed(problem, size, "close_range: %s", strerror(errno));
  if (limit(RLIMIT_CORE, 0) < 0 || limit(RLIMIT_NOFILE, 256) < 0
      || (confinement->file_size_limit_bytes > 0
          && limit(RLIMIT_FSIZE, confinement->file_size_limit_bytes) < 0)
      || (confinement->memory_limit_bytes > 0
          && limit(RLIMIT_DATA, confinement->memory_limit_bytes) < 0)
      || (confinement->thread_limit > 0
          && limit(RLIMIT_NPROC, threads_of_user() + confinement->thread_limit) < 0))
    return failed(problem, size, "setrlimit: %s", strerror(errno));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return failed(problem, size, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
  if (drop_capabilities() < 0) return failed(problem, size, "capset: %s", strerror(errno));
  if (abi >= 1) {
    enum instar_confinement_result result = restrict_files(confinement, abi, problem, size);
    if (result != INSTAR_CONFINED) return result;
  }
  if (install_filter() < 0) return failed(problem, size, "seccomp: %s", strerror(errno));
  if (abi < 1) {
    failed(problem, size, "the kernel has no Landlock, or it is switched off");
    return INSTAR_CONFINEMENT_UNAVAILABLE;
  }
  return INSTAR_CONFINED;
}
