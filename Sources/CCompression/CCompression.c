#include "CCompression.h"

#include <limits.h>

#if __has_include(<zlib.h>)
#include <zlib.h>
#else
/* The part of zlib.h that is used (its ABI has been the same since 1.2), so that building needs the library, not its
 * -dev package. */
typedef struct {
  const uint8_t *next_in;
  unsigned avail_in;
  unsigned long total_in;
  uint8_t *next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char *msg;
  void *state, *zalloc, *zfree, *opaque;
  int data_type;
  unsigned long adler, reserved;
} z_stream;
int inflateInit2_(z_stream *stream, int window_bits, const char *version, int stream_size);
int inflate(z_stream *stream, int flush);
int inflateEnd(z_stream *stream);
#define inflateInit2(stream, window_bits) inflateInit2_((stream), (window_bits), "1.2.11", (int)sizeof(z_stream))
enum { Z_FINISH = 4, Z_OK = 0, Z_STREAM_END = 1, Z_BUF_ERROR = -5 };
#endif

/* Without the header and checksum of zlib's own format. */
enum { RAW_DEFLATE = -15 };

enum instar_inflate_result instar_inflate(
    const uint8_t *input, size_t size, uint8_t *output, size_t capacity, size_t *count) {
  *count = 0;
  if (size > UINT_MAX || capacity > UINT_MAX) return instar_inflate_too_large;
  z_stream stream = {0};
  if (inflateInit2(&stream, RAW_DEFLATE) != Z_OK) return instar_inflate_malformed;
  stream.next_in = (uint8_t *)input;
  stream.avail_in = (unsigned)size;
  stream.next_out = output;
  stream.avail_out = (unsigned)capacity;
  int result = inflate(&stream, Z_FINISH);
  *count = capacity - stream.avail_out;
  int is_out_of_input = stream.avail_in == 0, is_out_of_room = stream.avail_out == 0;
  inflateEnd(&stream);
  if (result == Z_STREAM_END) return instar_inflated;
  if (result != Z_OK && result != Z_BUF_ERROR) return instar_inflate_malformed;
  return is_out_of_room && !is_out_of_input ? instar_inflate_too_large : instar_inflate_truncated;
}
