/* DEFLATE of zlib, which dpkg itself needs, so that it is on every Debian system. Its prototypes are in CCompression.c. */
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

#endif
