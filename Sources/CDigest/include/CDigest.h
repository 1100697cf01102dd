/* SHA-256 and SHA-512 of libmd, the message digest library that dpkg itself needs, so that it is on
 * every Debian system. Declared here (sha2(3)) so that building needs the library, not its -dev package. */
#ifndef CDIGEST_H
#define CDIGEST_H

#include <stddef.h>
#include <stdint.h>

#if __has_include(<sha2.h>)
#include <sha2.h>
#else
/* Both return the buffer, filled with the hexadecimal digest and a final NUL; 65 and 129 bytes. */
char *SHA256Data(const uint8_t *data, size_t length, char *buffer);
char *SHA512Data(const uint8_t *data, size_t length, char *buffer);
#endif

/* XXH3 with 128 bits, of libxxhash, which apt itself needs. It reads a file as fast as memory gives it. */
#if __has_include(<xxhash.h>)
#include <xxhash.h>
#else
typedef struct XXH3_state_s XXH3_state_t;
typedef struct {
  uint64_t low64;
  uint64_t high64;
} XXH128_hash_t;
XXH3_state_t *XXH3_createState(void);
int XXH3_freeState(XXH3_state_t *state);
/* 0, or an error for a null pointer. */
int XXH3_128bits_reset(XXH3_state_t *state);
int XXH3_128bits_update(XXH3_state_t *state, const void *data, size_t length);
XXH128_hash_t XXH3_128bits_digest(const XXH3_state_t *state);
#endif

/* The XXH3-128 digest of all bytes that are left in a file, in two halves. 0; -1 and errno. */
int instar_hash_file(int descriptor, uint64_t *high, uint64_t *low);

#endif
