/* The part of libsystemd that is used. Declared here as well (sd_journal_sendv(3), sd_notify(3),
 * sd_watchdog_enabled(3)) so that building needs libsystemd0, which every Debian system has, and
 * not its -dev package. */
#ifndef CSYSTEMD_H
#define CSYSTEMD_H

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
#endif

#endif
