/* One value of a row, as the checks of indexes read and compare it. */
#ifndef VALUE_H
#define VALUE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* Values of different classes are ordered by class. */
enum class { NONE, NUMBER, TEXT, BLOB };

struct value {
  enum class class;
  int is_real;
  sqlite3_int64 integer;
  double real;
  const unsigned char *bytes; /* Of a text or blob. */
  size_t count;
};

/* SQLite stores a whole number as an integer where it can, and indexes and tables may differ in that. */
static inline void set_real(struct value *value, double real)
{
  int is_whole = real >= -9223372036854775808.0 && real < 9223372036854775808.0 &&
                 real == (double)(sqlite3_int64)real;
  value->real = real;
  value->is_real = !is_whole;
  if (is_whole) value->integer = (sqlite3_int64)real;
}

#endif
