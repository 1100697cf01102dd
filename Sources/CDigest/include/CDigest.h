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

#endif
