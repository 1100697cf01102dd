#include "CCompression.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<zstd.h>)
#include <zstd.h>
#else
/* The part of zstd.h that is used (its ABI has been the same since 1.4), so that building needs the library, not its
 * -dev package. */
typedef struct ZSTD_CCtx_s ZSTD_CCtx;
typedef struct ZSTD_DCtx_s ZSTD_DCtx;
typedef struct {
  const void *src;
  size_t size, pos;
} ZSTD_inBuffer;
typedef struct {
  void *dst;
  size_t size, pos;
} ZSTD_outBuffer;
ZSTD_CCtx *ZSTD_createCCtx(void);
size_t ZSTD_freeCCtx(ZSTD_CCtx *context);
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx *context, int parameter, int value);
size_t ZSTD_compressStream2(ZSTD_CCtx *context, ZSTD_outBuffer *output, ZSTD_inBuffer *input, int directive);
ZSTD_DCtx *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx *context);
size_t ZSTD_decompressStream(ZSTD_DCtx *context, ZSTD_outBuffer *output, ZSTD_inBuffer *input);
unsigned ZSTD_isError(size_t result);
enum { ZSTD_c_checksumFlag = 201, ZSTD_e_continue = 0, ZSTD_e_end = 2 };
#endif

enum { BUFFER_SIZE = 1 << 18 };

/* The number of bytes read, 0 at the end of the file, -1 and errno. */
static ssize_t fill(int file, uint8_t *buffer) {
  for (;;) {
    ssize_t count = read(file, buffer, BUFFER_SIZE);
    if (count >= 0 || errno != EINTR) return count;
  }
}

/* 0, or an errno. */
static int write_all(int file, const uint8_t *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes += written;
    count -= (size_t)written;
  }
  return 0;
}

static int pack(ZSTD_CCtx *context, int input, int output, uint8_t *plain, uint8_t *packed) {
  for (;;) {
    ssize_t count = fill(input, plain);
    if (count < 0) return errno;
    int is_end = count == 0;
    ZSTD_inBuffer in = {plain, (size_t)count, 0};
    for (;;) {
      ZSTD_outBuffer out = {packed, BUFFER_SIZE, 0};
      size_t left = ZSTD_compressStream2(context, &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
      /* A valid context and valid buffers leave this one reason. */
      if (ZSTD_isError(left)) return ENOMEM;
      int reason = write_all(output, packed, out.pos);
      if (reason != 0) return reason;
      if (is_end ? left == 0 : in.pos == in.size) break;
    }
    if (is_end) return 0;
  }
}

int instar_pack_file(int input, int output) {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  uint8_t *plain = malloc(BUFFER_SIZE), *packed = malloc(BUFFER_SIZE);
  int result = ENOMEM;
  if (context && plain && packed && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)))
    result = pack(context, input, output, plain, packed);
  free(packed);
  free(plain);
  ZSTD_freeCCtx(context);
  return result;
}

static int unpack(
    ZSTD_DCtx *data, int input, instar_unpacked take, void *context, uint8_t *packed, uint8_t *plain) {
  size_t wanted = 1;
  for (;;) {
    ssize_t count = fill(input, packed);
    if (count < 0) return errno;
    if (count == 0) return wanted == 0 ? 0 : instar_unpack_truncated;
    ZSTD_inBuffer in = {packed, (size_t)count, 0};
    int is_full;
    do {
      ZSTD_outBuffer out = {plain, BUFFER_SIZE, 0};
      wanted = ZSTD_decompressStream(data, &out, &in);
      if (ZSTD_isError(wanted)) return instar_unpack_malformed;
      int reason = out.pos == 0 ? 0 : take(context, plain, out.pos);
      if (reason != 0) return reason;
      /* A full buffer may have left bytes in the context, unless the frame is complete. */
      is_full = out.pos == out.size && wanted != 0;
    } while (in.pos < in.size || is_full);
  }
}

int instar_unpack_file(int input, instar_unpacked take, void *context) {
  ZSTD_DCtx *data = ZSTD_createDCtx();
  uint8_t *packed = malloc(BUFFER_SIZE), *plain = malloc(BUFFER_SIZE);
  int result = data && packed && plain ? unpack(data, input, take, context, packed, plain) : ENOMEM;
  free(plain);
  free(packed);
  ZSTD_freeDCtx(data);
  return result;
}
