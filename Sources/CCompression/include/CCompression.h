/* DEFLATE of zlib and Zstandard of libzstd. dpkg itself needs both, so they are on every Debian system. Their prototypes
 * are in CCompression.c and Zstandard.c. */
#ifndef CCOMPRESSION_H
#define CCOMPRESSION_H

#include <stddef.h>
#include <stdint.h>

enum instar_inflate_result {
  instar_inflated,
  /* The input ends within the compressed data. */
  instar_inflate_truncated,
  instar_inflate_malformed,
  /* The output has more than `capacity` bytes. */
  instar_inflate_too_large,
};

/* Unpacks raw DEFLATE (RFC 1951). Never writes more than `capacity` bytes. `*count` becomes the number written. */
enum instar_inflate_result instar_inflate(
    const uint8_t *input, size_t size, uint8_t *output, size_t capacity, size_t *count);

/* Packs all bytes that are left in a file into one Zstandard frame with a checksum (RFC 8878). 0, or an errno. */
int instar_pack_file(int input, int output);

enum {
  instar_unpack_malformed = -1,
  /* The input ends within a frame, or is empty. */
  instar_unpack_truncated = -2,
  /* For whoever takes the bytes: there are more than it may take. */
  instar_unpack_too_long = -3,
};

/* Takes some unpacked bytes. 0, or an errno that ends the work. */
typedef int (*instar_unpacked)(void *context, const uint8_t *bytes, size_t count);

/* Unpacks all bytes that are left in a file. 0, an errno, or one of the values above. Uses at most some 130 MiB of
 * memory, whatever the file says. */
int instar_unpack_file(int input, instar_unpacked take, void *context);

#endif
