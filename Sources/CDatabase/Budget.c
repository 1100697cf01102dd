/* A store's schema can hold expressions that practically never end. SQLite calls the progress handler between the
 * instructions of a statement, but not inside one SQL function; for that the timer of the process is the last resort. */
#define _GNU_SOURCE
#include "CDatabase.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The processor time, in nanoseconds, at which statements are interrupted; 0 for never. */
static atomic_llong end_of_budget;
static volatile sig_atomic_t exit_status;

static long long processor_nanoseconds(void) {
  struct timespec time;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) < 0) return 0;
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

volatile unsigned instar_step_number;
/* The step that used up its time; 0 for none, as no step has an even number. */
static volatile unsigned late_step;

int instar_budget_is_used_up(void) {
  if (late_step != 0 && late_step == instar_step_number) return 1;
  long long end = atomic_load(&end_of_budget);
  return end != 0 && processor_nanoseconds() >= end;
}

static void end_process(int signal_number) {
  (void)signal_number;
  _exit(exit_status);
}

enum { INSTRUCTIONS_PER_CALL = 20000 };

static int check_budget(void *unused) {
  (void)unused;
  return instar_budget_is_used_up();
}

void instar_budget_observe(sqlite3 *database) {
  sqlite3_progress_handler(database, INSTRUCTIONS_PER_CALL, check_budget, NULL);
}

static int64_t scanned_rows(sqlite3 *database, int reset) {
  int64_t rows = 0;
  for (sqlite3_stmt *statement = NULL; (statement = sqlite3_next_stmt(database, statement)) != NULL;)
    if (reset || sqlite3_stmt_busy(statement))
      rows += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, reset);
  return rows;
}

static int report_progress(void *context) {
  struct instar_progress_observer *observer = context;
  observer->instructions += observer->instructions_per_call;
  observer->report(observer->context, scanned_rows(observer->database, 0), observer->instructions);
  return instar_budget_is_used_up();
}

void instar_progress_observe(sqlite3 *database, struct instar_progress_observer *observer,
                             int instructions_per_call) {
  observer->database = database;
  observer->instructions = 0;
  observer->instructions_per_call = instructions_per_call;
  scanned_rows(database, 1);
  sqlite3_progress_handler(database, instructions_per_call, report_progress, observer);
}

int instar_budget_begin(double seconds, double grace, int status) {
  exit_status = status;
  struct sigaction action = {.sa_handler = end_process};
  if (sigaction(SIGPROF, &action, NULL) < 0) return -1;
  double limit = seconds + grace;
  struct itimerval timer = {
    .it_value = {.tv_sec = (time_t)limit,
                 .tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6)}};
  atomic_store(&end_of_budget, processor_nanoseconds() + (long long)(seconds * 1e9));
  return setitimer(ITIMER_PROF, &timer, NULL);
}

double instar_budget_end(void) {
  struct itimerval timer = {0};
  setitimer(ITIMER_PROF, &timer, NULL);
  long long end = atomic_exchange(&end_of_budget, 0);
  return end == 0 ? 0 : (double)(end - processor_nanoseconds()) / 1e9;
}

/* The limit of one step, counted in seconds of the process by the timer. */
static int step_seconds, step_grace;

static void count_seconds(int signal_number) {
  (void)signal_number;
  static unsigned counted_step;
  static int seconds;
  unsigned step = instar_step_number;
  if (step % 2 == 0 || step != counted_step) {
    counted_step = step;
    seconds = 0;
    return;
  }
  seconds++;
  if (seconds >= step_seconds) late_step = step;
  if (seconds >= step_seconds + step_grace) _exit(exit_status);
}

static void end_late_process(int signal_number) {
  (void)signal_number;
  _exit(instar_step_number % 2 != 0 ? exit_status : EXIT_SUCCESS);
}

int instar_step_limit(int seconds, int grace, int status) {
  exit_status = status;
  step_seconds = seconds;
  step_grace = grace;
  struct sigaction action = {.sa_handler = count_seconds, .sa_flags = SA_RESTART};
  struct sigaction late = {.sa_handler = end_late_process};
  if (sigaction(SIGPROF, &action, NULL) < 0 || sigaction(SIGXCPU, &late, NULL) < 0) return -1;
  struct itimerval timer = {.it_interval = {.tv_sec = 1}, .it_value = {.tv_sec = 1}};
  return setitimer(ITIMER_PROF, &timer, NULL);
}
