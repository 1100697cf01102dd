/* A plugin that never comes back from being loaded, in two threads. */
#include <pthread.h>
#include <unistd.h>

void engine_say(const char *line);

static void *wait_for_ever(void *unused)
{
  for (;;) pause();
  return unused;
}

static void __attribute__((constructor)) loaded(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_ever, NULL);
  engine_say("waiting\n");
  wait_for_ever(NULL);
}

void *instar_plugin_plans(void) { return 0; }
