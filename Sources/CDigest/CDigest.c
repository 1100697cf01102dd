#include "CDigest.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int instar_hash_file(int descriptor, uint64_t *high, uint64_t *low)
{
  enum { size = 1 << 20 };
  XXH3_state_t *state = XXH3_createState();
  void *buffer = malloc(size);
  int problem = state && buffer && XXH3_128bits_reset(state) == 0 ? 0 : ENOMEM;
  off_t offset = 0;
  while (problem == 0) {
    ssize_t count = pread(descriptor, buffer, size, offset);
    if (count == 0) break;
    if (count > 0) {
      XXH3_128bits_update(state, buffer, (size_t)count);
      offset += count;
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  if (problem == 0) {
    XXH128_hash_t digest = XXH3_128bits_digest(state);
    *high = digest.high64;
    *low = digest.low64;
  }
  free(buffer);
  if (state) XXH3_freeState(state);
  errno = problem;
  return problem == 0 ? 0 : -1;
}
