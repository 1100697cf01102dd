/* instar-worker: confines itself, then loads the engine and one plugin.
 *
 * The order matters: arguments, confinement, library, plugin. A plugin's constructors run while it
 * is loaded, so the confinement comes before the plugin. It must also come before a second thread
 * exists, so before libInstar.so, which loads Foundation and Dispatch. libswiftCore.so is loaded
 * earlier, because SwiftPM links every program with it: it registers this program's (empty)
 * metadata and starts no thread. `instar_confine` refuses to continue if a second thread exists.
 *
 * The conversation with the keeper is on descriptor 3. Until the engine runs, this program sends
 * at most one message: why it cannot continue, as the JSON line that the engine would send.
 *
 * For a keeper that migrates many stores the program is a fork server (--serve): it loads libInstar.so once, which is
 * most of the time that a worker takes to start, and is then forked for each worker. It never loads a plugin. Each
 * worker is a process of its own, confines itself before it loads the plugin, as above, and begins with nothing that
 * another worker left. */
#define _GNU_SOURCE
#include "CInstar.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHANNEL = 3, READABLE_LIMIT = 64, THREAD_LIMIT = 512 };

/* What the keeper knows of the reason: WorkerEvent in WorkerMessages.swift. */
enum { EXIT_MEMORY = 70, EXIT_THREADS = 71 };

static const char usage[] =
  "usage: instar-worker --library FILE --plugin FILE [--clone-folder FOLDER] [--read PATH]...\n"
  "                     [--memory BYTES] [--file-size BYTES] [--from-input] [--allow-unconfined]\n"
  "       instar-worker --serve --library FILE\n"
  "\n"
  "Run the migration code of one plugin on a clone of a store. instar-keeper starts this program\n"
  "and talks to it on descriptor 3, a connected stream socket. Do not start it by hand.\n"
  "\n"
  "  --library FILE         libInstar.so, the engine\n"
  "  --plugin FILE          the plugin, built by 'instarctl plugin build'\n"
  "  --clone-folder FOLDER  the only folder that the plugin can write; without it, it can write none\n"
  "  --read PATH            a further file or folder that the plugin can read, such as the folder of\n"
  "                         the Swift runtime; repeatable. It can always read the system's libraries\n"
  "                         and time zones.\n"
  "  --memory BYTES         the most private memory that the worker can use\n"
  "  --file-size BYTES      the longest file that the worker can write\n"
  "  --from-input           load the plugin's bytes from standard input, a file in memory; FILE only\n"
  "                         names it\n"
  "  --allow-unconfined     continue where the kernel has no Landlock. The plugin can then open\n"
  "                         every file that the worker's user can open.\n"
  "  --serve                load the engine, and become a worker as often as the keeper asks for one, each\n"
  "                         time in a process of its own\n"
  "  --help                 print this text\n"
  "\n"
  "The worker cannot start a process, open a socket, signal another process, or open any other\n"
  "file except the world-readable files of /proc.\n"
  "Exit status: 0 done, 1 failed (one JSON line on descriptor 3 has the reason), 2 usage,\n"
  "70 the memory limit, 71 the limit of threads.\n";

/* ---- The limits of memory and threads ----
 *
 * At its limit the kernel refuses memory or a thread, and code that does not expect that traps somewhere. These
 * functions of the program are found before those of the C library, also by the plugin, and end the process with a
 * status that says why. Nothing relies on them: a plugin that evades them still meets the limits of the kernel. */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void *required(void *memory)
{
  if (!memory) _exit(EXIT_MEMORY);
  return memory;
}

void *malloc(size_t size) { return required(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return required(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return required(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

void *realloc(void *memory, size_t size)
{
  void *result = __libc_realloc(memory, size);
  return size == 0 ? result : required(result);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
  *memory = memalign(alignment, size);
  return 0;
}

int pthread_create(
  pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
  typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  create *next = (create *)dlsym(RTLD_NEXT, "pthread_create");
  int problem = next ? next(thread, attributes, start, argument) : ENOSYS;
  if (problem == EAGAIN) _exit(EXIT_THREADS);
  return problem;
}


/* Returns the length of the UTF-8 sequence at `text`, or 0 where it is not one. */
static size_t sequence_length(const unsigned char *text)
{
  size_t length;
  if (text[0] < 0x80) return 1;
  if (text[0] >= 0xC2 && text[0] <= 0xDF) length = 2;
  else if (text[0] >= 0xE0 && text[0] <= 0xEF) length = 3;
  else if (text[0] >= 0xF0 && text[0] <= 0xF4) length = 4;
  else return 0;
  for (size_t i = 1; i < length; i++) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  /* Overlong forms, surrogates, and what lies above U+10FFFF. */
  if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F)
      || (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F)) {
    return 0;
  }
  return length;
}

/* Writes a JSON string. Bytes that are not UTF-8, in a path or a loader message, become U+FFFD. */
static void write_json_string(FILE *out, const char *value)
{
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)value; *p;) {
    size_t length = sequence_length(p);
    if (length == 0) {
      fputs("\\ufffd", out);
      p += 1;
      continue;
    }
    if (*p == '"' || *p == '\\') fprintf(out, "\\%c", *p);
    else if (*p < 0x20) fprintf(out, "\\u%04x", *p);
    else fwrite(p, 1, length, out);
    p += length;
  }
  fputc('"', out);
}

static void send_line(const char *line, size_t length)
{
  while (length > 0) {
    ssize_t sent = send(CHANNEL, line, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return; /* The keeper is gone. */
    line += sent;
    length -= (size_t)sent;
  }
}

/* Sends `WorkerEvent.failed(InstarError(code, what, cause:, next:))` as Swift's Codable encodes it.
 * Returns the exit status. */
static int failed(
  const char *code, const char *what, const char *subject, const char *cause, const char *next)
{
  char sentence[4096];
  if (subject) snprintf(sentence, sizeof sentence, "%s '%s'", what, subject);
  else snprintf(sentence, sizeof sentence, "%s", what);

  char *line = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&line, &length);
  if (!out) return 1;
  fputs("{\"failed\":{\"_0\":{\"cause\":", out);
  write_json_string(out, cause);
  fputs(",\"code\":", out);
  write_json_string(out, code);
  fputs(",\"next\":", out);
  write_json_string(out, next);
  fputs(",\"what\":", out);
  write_json_string(out, sentence);
  fputs("}}}\n", out);
  if (fclose(out) == 0) send_line(line, length);
  free(line);
  return 1;
}

/* Returns whether a plugin needs a symbol of the SDK that this engine lacks: names of Swift symbols
 * contain their module. The plugin was then built for another version, although its ABI number
 * fits. */
static int lacks_interface(const char *reason)
{
  const char *symbol = strstr(reason, "undefined symbol: ");
  return symbol && strstr(symbol, "Instar") != NULL;
}

/* Whether the loader did not find a library that the plugin needs. Its message begins with that library's name. */
static int lacks_library(const char *plugin, const char *reason)
{
  return strstr(reason, ": cannot open shared object file") && strncmp(reason, plugin, strlen(plugin)) != 0
    && strncmp(reason, "/proc/", 6) != 0;
}

/* Writes what to do about a plugin that cannot be loaded, with its path quoted for a shell. */
static const char *advice_on_loading(char *next, size_t size, const char *plugin, const char *reason)
{
  FILE *out = fmemopen(next, size, "w");
  if (!out) return "build the plugin again with this version of Instar";
  fputs(
    lacks_library(plugin, reason)
      ? "install the library that the cause names, or build the plugin without it: "
      : "build the plugin again with this version of Instar: ",
    out);
  fputs("instarctl plugin build SOURCES -o '", out);
  for (const char *p = plugin; *p; p++) {
    if (*p == '\'') fputs("'\\''", out);
    else fputc(*p, out);
  }
  fputc('\'', out);
  fclose(out);
  next[size - 1] = 0;
  return next;
}

/* Makes the folders of a user that an app on Apple's platforms finds in place, by the names of Foundation on Linux. A
 * folder that cannot be made is missing for the plugin, which gets an error at its file. */
static void make_home_folders(const char *home)
{
  const char *const folders[] = { "Documents", ".cache", ".local", ".local/share" };
  char path[4096];
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    int length = snprintf(path, sizeof path, "%s/%s", home, folders[i]);
    if (length > 0 && (size_t)length < sizeof path) mkdir(path, 0700);
  }
}

static int wrong_usage(const char *problem)
{
  fprintf(stderr, "instar-worker: %s\n%s", problem, usage);
  return 2;
}

/* Returns the process that created the socket pair of descriptor 3, which is the keeper. getppid()
 * would return another process if the keeper has already died. */
static pid_t keeper_of_channel(void)
{
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(CHANNEL, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -1;
  return peer.pid;
}

/* Removes the launch arguments that Apple's frameworks read from any command line, and passes them to
 * the library in the environment: a confined process cannot read its command line.
 * Returns the number of arguments left. */
static int take_launch_arguments(int argc, char *argv[])
{
  int left = 0, level = 0;
  for (int i = 0; i < argc; i++) {
    int most = strcmp(argv[i], "-com.apple.CoreData.SQLDebug") == 0 ? 4
      : strcmp(argv[i], "-com.apple.coredata.swiftdata.debug") == 0 ? 1 : 0;
    if (most == 0) {
      argv[left++] = argv[i];
    } else if (++i < argc) {
      int asked = atoi(argv[i]);
      if (asked > most) asked = most;
      if (asked > level) level = asked;
    }
  }
  argv[left] = NULL;
  char text[] = {(char)('0' + level), 0};
  if (level > 0) setenv("INSTAR_SQL_DEBUG", text, 1);
  return left;
}

/* The engine, where a fork server has loaded it. */
static void *loaded_engine;

static void set_temporary_folder(const char *folder);

/* Becomes the worker that the arguments describe. `parent` is the process that must be the parent. Returns the exit
 * status. */
static int work(int argc, char *argv[], pid_t parent)
{
  argc = take_launch_arguments(argc, argv);
  const char *library = NULL, *plugin = NULL;
  struct instar_confinement confinement = {.thread_limit = THREAD_LIMIT};
  const char *readable[READABLE_LIMIT] = {
    /* The system's libraries, and the loader's list of them. */
    "/etc/ld.so.cache", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib",
    /* Foundation's time zones and random numbers. */
    "/usr/share/zoneinfo", "/etc/localtime", "/dev/urandom",
  };
  size_t count = 0;
  int from_input = 0;
  while (readable[count]) count++;

  enum { LIBRARY = 1, PLUGIN, CLONE_FOLDER, READ, MEMORY, FILE_SIZE, FROM_INPUT, ALLOW_UNCONFINED, HELP };
  static const struct option options[] = {
    {"library", required_argument, NULL, LIBRARY},
    {"plugin", required_argument, NULL, PLUGIN},
    {"clone-folder", required_argument, NULL, CLONE_FOLDER},
    {"read", required_argument, NULL, READ},
    {"memory", required_argument, NULL, MEMORY},
    {"file-size", required_argument, NULL, FILE_SIZE},
    {"from-input", no_argument, NULL, FROM_INPUT},
    {"allow-unconfined", no_argument, NULL, ALLOW_UNCONFINED},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
  };
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (option) {
    case LIBRARY: library = optarg; break;
    case PLUGIN: plugin = optarg; break;
    case CLONE_FOLDER: confinement.clone_folder = optarg; break;
    case READ:
      if (count + 2 >= READABLE_LIMIT) return wrong_usage("too many --read");
      readable[count++] = optarg;
      break;
    case MEMORY: confinement.memory_limit_bytes = strtoull(optarg, NULL, 10); break;
    case FILE_SIZE: confinement.file_size_limit_bytes = strtoull(optarg, NULL, 10); break;
    case FROM_INPUT: from_input = 1; break;
    case ALLOW_UNCONFINED: confinement.allow_unconfined = 1; break;
    case HELP:
      fputs(usage, stdout);
      return 0;
    default: return wrong_usage("unknown option, or an option without its value");
    }
  }
  if (optind < argc) return wrong_usage("unexpected argument");
  if (!library || !plugin) return wrong_usage("--library and --plugin are required");
  /* dlopen searches the system's folders for a name without a slash. */
  if (library[0] != '/' || plugin[0] != '/') {
    return wrong_usage("--library and --plugin must be absolute paths");
  }
  readable[count++] = library;
  readable[count++] = plugin;
  confinement.readable = readable;
  confinement.readable_count = count;

  if (parent <= 0) return wrong_usage("descriptor 3 is not a connected socket");
  confinement.parent = parent;

  /* For temporary files of SQLite and Foundation, and for the folders in which plans keep values in a file between
   * two closures: only this folder is writable. Foundation asks the last one for the folder of documents. */
  if (confinement.clone_folder) {
    const char *const names[] = { "SQLITE_TMPDIR", "TMPDIR", "HOME", "CFFIXED_USER_HOME" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      setenv(names[i], confinement.clone_folder, 1);
    }
    make_home_folders(confinement.clone_folder);
    if (loaded_engine) set_temporary_folder(confinement.clone_folder);
  }

  /* The confined process cannot open it. */
  int null = from_input ? open("/dev/null", O_RDWR) : -1;
  char problem[1024] = "";
  switch (instar_confine(&confinement, problem, sizeof problem)) {
  case INSTAR_CONFINED: break;
  case INSTAR_CONFINEMENT_UNAVAILABLE:
    if (!confinement.allow_unconfined) {
      return failed(
        "I403", "cannot confine the plugin", plugin, problem,
        "boot a kernel with Landlock (5.13 or later, 'landlock' in its lsm= list), "
        "or start instar-keeper with --allow-unconfined");
    }
    fprintf(
      stderr, "instar-worker: warning: %s: the plugin '%s' can open whatever this user can open\n",
      problem, plugin);
    break;
  case INSTAR_CONFINEMENT_FAILED:
    return failed(
      "I403", "cannot confine the plugin", plugin, problem,
      "report this problem with the output of: uname -r");
  }

  /* What a plugin prints goes to a pipe, which libc buffers whole: lines would be lost with a worker that
   * traps. */
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  void *engine = loaded_engine ? loaded_engine : dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (!engine) {
    return failed("I604", "cannot load the engine", library, dlerror(), "reinstall the package that has this file");
  }
  int (*engine_main)(int, const char *, void *(*)(void)) =
    (int (*)(int, const char *, void *(*)(void)))dlsym(
      engine, loaded_engine ? "instar_worker_main_after_fork" : "instar_worker_main");
  if (!engine_main) {
    return failed("I604", "cannot use the engine", library, dlerror(), "reinstall the package that has this file");
  }
  /* The keeper checked a signature of these bytes. The file of that name may have been replaced since. */
  void *code = dlopen(from_input ? "/proc/self/fd/0" : plugin, RTLD_NOW);
  /* The plugin's mappings keep the bytes; its code finds an empty input. */
  if (null >= 0) dup2(null, 0);
  if (!code) {
    const char *reason = dlerror();
    char next[4 * PATH_MAX + 200];
    return failed(
      lacks_interface(reason) ? "I402" : "I403", "cannot load plugin", plugin, reason,
      advice_on_loading(next, sizeof next, plugin, reason));
  }
  void *(*plans)(void) = (void *(*)(void))dlsym(code, "instar_plugin_plans");
  if (!plans) {
    return failed(
      "I401", "cannot use plugin", plugin, dlerror(),
      "end one of its source files in #InstarPlugin(YourPlan.self)");
  }
  return engine_main(CHANNEL, plugin, plans);
}

/* SQLite read SQLITE_TMPDIR when the server initialized it, and reads it never again (sqlite.org/c3ref/temp_directory.html). */
static void set_temporary_folder(const char *folder)
{
  char **known = dlsym(loaded_engine, "sqlite3_temp_directory");
  char *(*make)(const char *, ...) = (char *(*)(const char *, ...))dlsym(loaded_engine, "sqlite3_mprintf");
  if (known && make) *known = make("%s", folder);
}

static int work_after_fork(int argc, char *argv[], pid_t server)
{
  /* As the program of this name begins: its arguments are read from the first. */
  optind = 1;
  /* SQLite draws its random numbers from a seed in memory, which each worker would have. This makes it read another
   * one (sqlite.org/c3ref/randomness.html). */
  void (*sqlite_random)(int, void *) =
    loaded_engine ? (void (*)(int, void *))dlsym(loaded_engine, "sqlite3_randomness") : NULL;
  if (sqlite_random) sqlite_random(0, NULL);
  return work(argc, argv, server);
}

/* Loads the engine, and has it do once what each worker would do first. Where it cannot be loaded, each worker reports
 * that. */
static void *load_engine(void *library)
{
  loaded_engine = dlopen((const char *)library, RTLD_NOW | RTLD_GLOBAL);
  void (*prepare)(void) =
    loaded_engine ? (void (*)(void))dlsym(loaded_engine, "instar_worker_prepare") : NULL;
  if (prepare) prepare();
  return NULL;
}

/* Loads the engine on a thread that ends before the first fork. libdispatch and Swift's locks note the number of each
 * thread that uses them. In the workers the thread that forked has another number; so it must not have used them. */
static int serve(int argc, char *argv[])
{
  if (argc != 4 || strcmp(argv[2], "--library") != 0 || argv[3][0] != '/') {
    return wrong_usage("--serve needs --library and an absolute path");
  }
  pid_t keeper = keeper_of_channel();
  if (keeper <= 0) return wrong_usage("descriptor 3 is not a connected socket");
  pthread_t loader;
  if (pthread_create(&loader, NULL, load_engine, argv[3]) != 0) return 1;
  if (pthread_join(loader, NULL) != 0) return 1;
  return instar_fork_serve(CHANNEL, keeper, work_after_fork);
}

int main(int argc, char *argv[])
{
  if (argc > 1 && strcmp(argv[1], "--serve") == 0) return serve(argc, argv);
  return work(argc, argv, keeper_of_channel());
}
