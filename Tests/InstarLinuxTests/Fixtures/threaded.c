/* Preloaded: a thread from before main. */
#include <pthread.h>
#include <unistd.h>

static void *wait_for_ever(void *unused)
{
  for (;;) pause();
  return unused;
}

static void __attribute__((constructor)) loaded(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_ever, NULL);
}
