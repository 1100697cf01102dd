/* Preloaded: the wall clock is as many seconds off as SKEW_SECONDS says. All other clocks are right.
   libfaketime shifts the timers of other clocks too, which event loops wait for. Waits until a time of the wall clock
   get the kernel's: libdispatch has semaphores wait for such a time. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void) {
  const char *text = getenv("SKEW_SECONDS");
  return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += skew();
  return result;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

/* A time of another clock than the wall clock counts from the start of the machine, some years ago at most. */
static struct timespec of_kernel(const struct timespec *time) {
  struct timespec result = *time;
  if (result.tv_sec > 1000000000) result.tv_sec -= skew();
  return result;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *time) {
  static int (*next)(sem_t *, const struct timespec *);
  if (!next) next = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec end = of_kernel(time);
  return next(semaphore, &end);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
  static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!next)
    next = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(
        RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec end = of_kernel(time);
  return next(condition, mutex, &end);
}
