/* Makes writes to regular files short, as a disk may: the TORTURE_SHORT_WRITE-th one, or each where that is "every".
 * packaging/torture loads it into a keeper by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static long wanted; /* 0: none, -1: every */
static atomic_long count;

static void __attribute__((constructor)) begin(void)
{
  const char *text = getenv("TORTURE_SHORT_WRITE");
  wanted = !text ? 0 : strcmp(text, "every") == 0 ? -1 : atol(text);
  unsetenv("LD_PRELOAD"); /* not for the worker */
}

static size_t shorten(int descriptor, size_t size)
{
  struct stat status;
  if (size < 2 || wanted == 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return size;
  return wanted < 0 || atomic_fetch_add(&count, 1) + 1 == wanted ? (size + 1) / 2 : size;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int to, const void *bytes, size_t size)
{
  return REAL(write)(to, bytes, shorten(to, size));
}

ssize_t pwrite(int to, const void *bytes, size_t size, off_t offset)
{
  return REAL(pwrite)(to, bytes, shorten(to, size), offset);
}

ssize_t pwrite64(int to, const void *bytes, size_t size, off64_t offset)
{
  return REAL(pwrite64)(to, bytes, shorten(to, size), offset);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
  return REAL(sendfile)(to, from, offset, shorten(to, size));
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
  return REAL(sendfile64)(to, from, offset, shorten(to, size));
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *offset, size_t size, unsigned flags)
{
  return REAL(copy_file_range)(from, at, to, offset, shorten(to, size), flags);
}
