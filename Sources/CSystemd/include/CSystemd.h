/* The part of libsystemd that is used. Declared here as well (sd_journal_sendv(3), sd_notify(3),
 * sd_watchdog_enabled(3), sd_listen_fds(3), sd_is_socket(3)) so that building needs libsystemd0, which every Debian system has, and
 * not its -dev package. */
#ifndef CSYSTEMD_H
#define CSYSTEMD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#if __has_include(<systemd/sd-journal.h>) && __has_include(<systemd/sd-daemon.h>)
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#else
/* Sends one entry of `count` fields "NAME=value"; values may hold any byte. 0, or a negative
 * errno. Without a journal it returns 0 as well, and the entry is lost. */
int sd_journal_sendv(const struct iovec *fields, int count);
/* Tells the service manager lines of "NAME=value". 0 where nobody asked to be told. */
int sd_notify(int unset_environment, const char *state);
/* Above 0 where the service manager expects WATCHDOG=1, and then `*microseconds` is how often. */
int sd_watchdog_enabled(int unset_environment, uint64_t *microseconds);
/* How many descriptors were passed to this process, from 3 on; they become close-on-exec. `*names`
 * is then an array of as many names, all of which the caller frees. A negative errno where the
 * variables are malformed. */
int sd_listen_fds_with_names(int unset_environment, char ***names);
/* Above 0 where the descriptor is a socket of this type in the file system; `listening` is 1 for
 * one that listens, and `path` NULL for any. */
int sd_is_socket_unix(int fd, int type, int listening, const char *path, size_t length);
#endif

#endif
