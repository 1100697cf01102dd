/* A process that is forked for each child: a child starts with the libraries that the process has loaded, and with
 * nothing that another child left in memory.
 *
 * States of the server: idle (no child), serving (one child, running or ended, not reaped). Invariants:
 * - The server has one thread, so a child finds no lock held by a thread that it does not have.
 * - A child is reaped when its user asks for that: until then the kernel does not reuse its number, which is also its
 *   group's.
 * - The server dies with its parent, and a child that asks for that (PR_SET_PDEATHSIG) with the server. */
#define _GNU_SOURCE
#include "CInstar.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START = 'S', REAP = 'R', DESCRIPTORS = 4, ARGUMENTS_LIMIT = 256, REQUEST_LIMIT = 128 << 10 };

/* How long the server may take to load its libraries and to fork. */
enum { PATIENCE_SECONDS = 30 };

/* How often, a millisecond apart, the server looks whether a thread that has ended is gone. */
enum { REMOVAL_ATTEMPTS = 5000 };

struct started {
  int problem; /* 0, or an errno. */
  pid_t pid;
};

struct reaped {
  int problem;
  int signaled;
  int code;
};

/* Room for the descriptors of a request. */
union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
};

/* ---- Its user ---- */

int instar_packet_pair(int *one, int *other)
{
  int descriptors[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, descriptors) < 0) return -1;
  const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
  setsockopt(descriptors[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  *one = descriptors[0];
  *other = descriptors[1];
  return 0;
}

/* Receives an answer of this size. 0; -1 and errno.
 *
 * MSG_TRUNC returns the size of the whole packet: a late answer to another request must not be read as this one's. */
static int receive_answer(int server, void *answer, size_t size)
{
  ssize_t received;
  do {
    received = recv(server, answer, size, MSG_TRUNC);
  } while (received < 0 && errno == EINTR);
  if (received == (ssize_t)size) return 0;
  if (received >= 0) errno = received == 0 ? ECONNRESET : EPROTO;
  return -1;
}

int instar_fork_start(
  int server, const char *arguments, size_t size, const int descriptors[4], pid_t *pid)
{
  char kind = START;
  struct iovec parts[] = {
    {.iov_base = &kind, .iov_len = 1}, {.iov_base = (void *)arguments, .iov_len = size}};
  union control control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {
    .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(DESCRIPTORS * sizeof(int));
  memcpy(CMSG_DATA(header), descriptors, DESCRIPTORS * sizeof(int));
  ssize_t sent;
  do {
    sent = sendmsg(server, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    if (errno == EPIPE) errno = ECONNRESET;
    return -1;
  }
  struct started started;
  if (receive_answer(server, &started, sizeof started) < 0) return -1;
  if (started.problem != 0) {
    errno = started.problem;
    return -1;
  }
  /* Never a number that means other processes to kill(2). */
  if (started.pid <= 1) {
    errno = EPROTO;
    return -1;
  }
  *pid = started.pid;
  return 0;
}

int instar_fork_reap(int server, int *signaled, int *code)
{
  const char kind = REAP;
  ssize_t sent;
  do {
    sent = send(server, &kind, 1, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  struct reaped reaped;
  if (sent < 0 || receive_answer(server, &reaped, sizeof reaped) < 0) return -1;
  if (reaped.problem != 0) {
    errno = reaped.problem;
    return -1;
  }
  *signaled = reaped.signaled;
  *code = reaped.code;
  return 0;
}

/* ---- The server ---- */

struct request {
  char bytes[REQUEST_LIMIT + 1];
  ssize_t size;
  int descriptors[DESCRIPTORS];
  int descriptor_count;
};

/* The size of the next request is 0 at the end of the conversation; -1 and errno. */
static void receive_request(int channel, struct request *request)
{
  union control control;
  struct iovec part = {.iov_base = request->bytes, .iov_len = REQUEST_LIMIT};
  struct msghdr message;
  do {
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    request->size = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  } while (request->size < 0 && errno == EINTR);
  request->descriptor_count = 0;
  if (request->size <= 0) return;
  request->bytes[request->size] = 0;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    size_t size = header->cmsg_len - CMSG_LEN(0);
    request->descriptor_count = (int)(size / sizeof(int));
    memcpy(request->descriptors, CMSG_DATA(header), size);
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
    errno = EMSGSIZE;
    request->size = -1;
  }
}

static void close_descriptors(const struct request *request)
{
  for (int i = 0; i < request->descriptor_count; i++) close(request->descriptors[i]);
}

/* The child's part: returns never. */
static void run_child(
  struct request *request, pid_t server, int (*run)(int, char *[], pid_t))
{
  char *arguments[ARGUMENTS_LIMIT + 1];
  int count = 0;
  for (char *text = request->bytes + 1; text < request->bytes + request->size && count < ARGUMENTS_LIMIT;
       text += strlen(text) + 1) {
    arguments[count++] = text;
  }
  arguments[count] = NULL;
  int copies[DESCRIPTORS];
  if (setpgid(0, 0) < 0 || request->descriptor_count != DESCRIPTORS) _exit(127);
  /* First above those that are about to be replaced. */
  for (int i = 0; i < DESCRIPTORS; i++) {
    copies[i] = fcntl(request->descriptors[i], F_DUPFD_CLOEXEC, 10);
    if (copies[i] < 0) _exit(127);
  }
  for (int i = 0; i < DESCRIPTORS; i++) {
    if (dup2(copies[i], i) < 0) _exit(127);
  }
  if (syscall(436 /* close_range */, (unsigned)DESCRIPTORS, ~0U, 0U) < 0) _exit(127);
  exit(run(count, arguments, server));
}

static pid_t start_child(
  int channel, struct request *request, int (*run)(int, char *[], pid_t))
{
  const pid_t server = getpid();
  const pid_t child = fork();
  if (child == 0) run_child(request, server, run);
  struct started started = {.problem = child < 0 ? errno : 0, .pid = child};
  /* Its user may signal the group at once. */
  if (child > 0) setpgid(child, child);
  /* A user that is gone reads no answer; the next request is the end of the conversation. */
  (void)!send(channel, &started, sizeof started, MSG_NOSIGNAL);
  return child;
}

static void reap_child(int channel, pid_t child)
{
  struct reaped reaped = {.problem = ECHILD};
  siginfo_t ended;
  if (child > 0) {
    /* While the child is a zombie, its number is its own, and its group's. */
    kill(-child, SIGKILL);
    int result;
    do {
      result = waitid(P_PID, (id_t)child, &ended, WEXITED);
    } while (result < 0 && errno == EINTR);
    reaped.problem = result < 0 ? errno : 0;
    reaped.signaled = ended.si_code != CLD_EXITED;
    reaped.code = ended.si_status;
  }
  (void)!send(channel, &reaped, sizeof reaped, MSG_NOSIGNAL);
}

int instar_fork_serve(int channel, pid_t parent, int (*run)(int, char *[], pid_t))
{
  /* unshare(2): CLONE_THREAD has no effect in a process of one thread, and fails in any other. A thread that was joined
   * counts until the kernel has removed it, which may take a moment longer. */
  for (int attempts = 0; unshare(CLONE_THREAD) < 0; attempts++) {
    if (errno != EINVAL || attempts == REMOVAL_ATTEMPTS) return 1;
    usleep(1000);
  }
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent) return 1;
  static struct request request;
  pid_t child = -1;
  for (;;) {
    receive_request(channel, &request);
    if (request.size == 0) return 0;
    if (request.size > 0 && request.bytes[0] == START && child <= 0) {
      child = start_child(channel, &request, run);
    } else if (request.size > 0 && request.bytes[0] == REAP) {
      reap_child(channel, child);
      child = -1;
    } else {
      close_descriptors(&request);
      return 1;
    }
    close_descriptors(&request);
  }
}
