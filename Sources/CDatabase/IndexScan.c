/* The check of indexes reads each row and each entry of a store: some ten values a microsecond. So these loops read a
 * value where it is, in the file's pages or in SQLite's, and copy nothing but the key of the entry before. */
#include "CDatabase.h"

#include "TreeReader.h"

#include <stdlib.h>
#include <string.h>

/* The bytes are valid until the next step. */
static void read_value(sqlite3_stmt *statement, int column, struct value *value)
{
  /* Not protected, which matters only where several threads use a connection at the same time. */
  sqlite3_value *found = sqlite3_column_value(statement, column);
  value->is_real = 0;
  switch (sqlite3_value_type(found)) {
  case SQLITE_INTEGER:
    value->class = NUMBER;
    value->integer = sqlite3_value_int64(found);
    return;
  case SQLITE_FLOAT:
    value->class = NUMBER;
    set_real(value, sqlite3_value_double(found));
    return;
  case SQLITE_TEXT:
    value->class = TEXT;
    /* The text first: SQLite then counts the bytes of what it returned. */
    value->bytes = sqlite3_value_text(found);
    break;
  case SQLITE_BLOB:
    value->class = BLOB;
    value->bytes = sqlite3_value_blob(found);
    break;
  default: value->class = NONE; return;
  }
  value->count = value->bytes ? (size_t)sqlite3_value_bytes(found) : 0;
}

/* Mixes 64 bits into a hash; `kind` tells equal bits of different types apart. */
static uint64_t mix(uint64_t hash, uint64_t bits, uint64_t kind, const uint64_t keys[2])
{
  unsigned __int128 product = (unsigned __int128)(hash ^ bits ^ keys[1]) * (keys[0] + (kind << 1));
  return (uint64_t)(product >> 64) ^ (uint64_t)product ^ kind;
}

static uint64_t mix_value(uint64_t hash, const struct value *value, const uint64_t keys[2])
{
  uint64_t bits = 0;
  switch (value->class) {
  case NONE: return mix(hash, 0, 1, keys);
  case NUMBER:
    if (!value->is_real) return mix(hash, (uint64_t)value->integer, 2, keys);
    memcpy(&bits, &value->real, sizeof bits);
    return mix(hash, bits, 3, keys);
  case TEXT:
  case BLOB: break;
  }
  uint64_t kind = value->class == TEXT ? 4 : 5;
  size_t offset = 0;
  for (; offset + sizeof bits <= value->count; offset += sizeof bits) {
    memcpy(&bits, value->bytes + offset, sizeof bits);
    hash = mix(hash, bits, kind, keys);
  }
  bits = 0;
  if (offset < value->count) memcpy(&bits, value->bytes + offset, value->count - offset);
  return mix(mix(hash, bits, kind, keys), value->count, kind, keys);
}

/* MARK: Where rows come from */

/* The rows of a statement; of a b-tree where there is none. */
struct source {
  sqlite3_stmt *statement;
  struct tree_reader tree;
};

static int open_source(struct source *source, const struct instar_rows *rows)
{
  source->statement = rows->statement;
  if (rows->statement) return SQLITE_OK;
  return tree_reader_open(
      &source->tree, rows->database, rows->root, rows->is_index, rows->column_count, rows->missing_is_null);
}

static void close_source(struct source *source)
{
  if (!source->statement) tree_reader_close(&source->tree);
}

static inline int next_row(struct source *source)
{
  return source->statement ? sqlite3_step(source->statement) : tree_reader_next(&source->tree);
}

static inline void read_column(struct source *source, int column, struct value *value)
{
  if (source->statement) {
    read_value(source->statement, column, value);
    return;
  }
  if (column != INSTAR_ROWID) {
    tree_reader_value(&source->tree, column, value);
    return;
  }
  value->class = NUMBER;
  value->is_real = 0;
  value->integer = source->tree.rowid;
}

int instar_fingerprint_table(
    const struct instar_rows *rows, const struct instar_index_columns *indexes, int index_count,
    const int *columns, const uint64_t keys[2], struct instar_fingerprint *fingerprints)
{
  struct source source;
  int code = open_source(&source, rows);
  while (code == SQLITE_OK && (code = next_row(&source)) == SQLITE_ROW) {
    code = SQLITE_OK;
    for (int index = 0; index < index_count; index++) {
      const struct instar_index_columns *read = &indexes[index];
      if (read->condition >= 0 && sqlite3_column_int(source.statement, read->condition) == 0) continue;
      uint64_t hash = keys[0];
      for (int position = 0; position < read->count; position++) {
        struct value value;
        read_column(&source, columns[read->first + position], &value);
        hash = mix_value(hash, &value, keys);
      }
      fingerprints[index].count += 1;
      fingerprints[index].sum += hash;
    }
  }
  close_source(&source);
  return code;
}

/* MARK: Repeated values */

static int lower(unsigned char byte) { return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte; }

static size_t trimmed(const struct value *text)
{
  size_t count = text->count;
  while (count > 0 && text->bytes[count - 1] == ' ') count--;
  return count;
}

/* Equal for values that any collation of SQLite takes for equal. */
static uint64_t mix_loosely(uint64_t hash, const struct value *value, const uint64_t keys[2])
{
  if (value->class != TEXT) return mix_value(hash, value, keys);
  size_t count = trimmed(value);
  uint64_t bits = 0;
  for (size_t offset = 0; offset < count && value->bytes[offset]; offset++) {
    bits = bits << 8 | (uint64_t)lower(value->bytes[offset]);
    if (offset % sizeof bits == sizeof bits - 1) {
      hash = mix(hash, bits, 4, keys);
      bits = 0;
    }
  }
  return mix(hash, bits, 4, keys);
}

/* A set of hashes. 0 is a free place, so it stands for no hash. */
struct hashes {
  uint64_t *places;
  size_t capacity, count;
};

/* Returns 1 if the hash is new, 0 if the set has it, -1 without memory. */
static int insert(struct hashes *set, uint64_t hash)
{
  if (set->count * 4 >= set->capacity * 3) {
    struct hashes larger = {0, set->capacity ? set->capacity * 2 : 1024, 0};
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    if (!larger.places) return -1;
    for (size_t place = 0; place < set->capacity; place++)
      if (set->places[place]) insert(&larger, set->places[place]);
    free(set->places);
    *set = larger;
  }
  if (!hash) hash = 1;
  size_t place = hash & (set->capacity - 1);
  for (; set->places[place]; place = (place + 1) & (set->capacity - 1))
    if (set->places[place] == hash) return 0;
  set->places[place] = hash;
  set->count++;
  return 1;
}

int instar_may_repeat(struct sqlite3_stmt *rows, size_t limit, const uint64_t keys[2], int *may_repeat)
{
  struct hashes set = {0};
  int code, columns = sqlite3_column_count(rows);
  *may_repeat = 0;
  while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
    uint64_t hash = keys[0];
    for (int column = 0; column < columns; column++) {
      struct value value;
      read_value(rows, column, &value);
      hash = mix_loosely(hash, &value, keys);
    }
    if (set.count < limit && insert(&set, hash) == 1) continue;
    *may_repeat = 1;
    code = SQLITE_DONE;
    break;
  }
  free(set.places);
  return code;
}

/* A part of the order of hashes, then of keys: their bytes, from the highest one. */
static unsigned digit(const struct instar_row_hash *row, int level)
{
  uint64_t word = level < 8 ? row->hash : (uint64_t)row->key ^ (uint64_t)1 << 63;
  return (unsigned)(word >> (56 - 8 * (level % 8)) & 0xFF);
}

static int is_after(const struct instar_row_hash *left, const struct instar_row_hash *right)
{
  return left->hash != right->hash ? left->hash > right->hash : left->key > right->key;
}

enum { LEVELS = 16, FEW_ROWS = 32 };

/* Sorts rows that are equal in the digits before `level`, in place: a table of hashes would need twice the memory. */
static void sort_rows(struct instar_row_hash *rows, size_t count, int level)
{
  if (count <= FEW_ROWS || level == LEVELS) {
    for (size_t place = 1; place < count; place++) {
      struct instar_row_hash row = rows[place];
      size_t free_place = place;
      for (; free_place > 0 && is_after(&rows[free_place - 1], &row); free_place--)
        rows[free_place] = rows[free_place - 1];
      rows[free_place] = row;
    }
    return;
  }
  size_t next[256], ends[256] = {0}, start = 0;
  for (size_t place = 0; place < count; place++) ends[digit(&rows[place], level)]++;
  for (int bucket = 0; bucket < 256; bucket++) {
    next[bucket] = start;
    start += ends[bucket];
    ends[bucket] = start;
  }
  for (unsigned bucket = 0; bucket < 256; bucket++)
    while (next[bucket] < ends[bucket]) {
      struct instar_row_hash *row = &rows[next[bucket]], other = *row;
      unsigned home = digit(row, level);
      if (home != bucket) {
        *row = rows[next[home]];
        rows[next[home]] = other;
      }
      next[home]++;
    }
  start = 0;
  for (int bucket = 0; bucket < 256; bucket++) {
    if (ends[bucket] - start > 1) sort_rows(rows + start, ends[bucket] - start, level + 1);
    start = ends[bucket];
  }
}

static int append_hash(struct instar_row_hashes *found, uint64_t hash, int64_t key)
{
  if (found->count == found->capacity) {
    size_t capacity = found->capacity + found->capacity / 2 + 1024;
    struct instar_row_hash *longer = realloc(found->rows, capacity * sizeof *longer);
    if (!longer) return 0;
    found->rows = longer;
    found->capacity = capacity;
  }
  found->rows[found->count++] = (struct instar_row_hash){hash, key};
  return 1;
}

int instar_hash_rows(
    struct sqlite3_stmt *rows, size_t limit, const uint64_t keys[2], struct instar_row_hashes *found)
{
  int columns = sqlite3_column_count(rows);
  for (; limit > 0; limit--) {
    int code = sqlite3_step(rows);
    if (code != SQLITE_ROW) return code;
    uint64_t hash = keys[0];
    int column = 1;
    for (; column < columns; column++) {
      struct value value;
      read_value(rows, column, &value);
      if (value.class == NONE) break;
      hash = mix_loosely(hash, &value, keys);
    }
    if (column == columns && !append_hash(found, hash, sqlite3_column_int64(rows, 0))) return SQLITE_NOMEM;
  }
  return SQLITE_ROW;
}

void instar_keep_repeated(struct instar_row_hashes *found)
{
  struct instar_row_hash *rows = found->rows;
  sort_rows(rows, found->count, 0);
  size_t kept = 0;
  for (size_t start = 0, end; start < found->count; start = end) {
    for (end = start + 1; end < found->count && rows[end].hash == rows[start].hash;) end++;
    if (end - start < 2) continue;
    /* In the order of signed numbers. */
    uint64_t lowest = (uint64_t)rows[start].key ^ (uint64_t)1 << 63;
    for (size_t place = start; place < end; place++)
      rows[kept++] = (struct instar_row_hash){lowest, rows[place].key};
  }
  sort_rows(rows, kept, 0);
  found->count = kept;
  /* Memory that cannot be released stays in use: nothing is lost. */
  struct instar_row_hash *shorter = kept ? realloc(rows, kept * sizeof *rows) : NULL;
  if (!shorter) return;
  found->rows = shorter;
  found->capacity = kept;
}

/* MARK: Keys of other rows */

/* The most keys of a set, in bits. */
static const uint64_t LARGEST_SET = (uint64_t)1 << 28;

static int is_of_kind(struct source *source, const struct instar_key_rows *targets)
{
  if (targets->kind_count == 0) return 1;
  struct value kind;
  read_column(source, targets->kind, &kind);
  if (kind.class != NUMBER || kind.is_real) return 0;
  for (int position = 0; position < targets->kind_count; position++)
    if (targets->kinds[position] == kind.integer) return 1;
  return 0;
}

/* Sets the bit of each key. Returns SQLITE_DONE, or an error. */
static int collect_keys(const struct instar_key_rows *targets, uint64_t range, unsigned char *set)
{
  struct source source;
  int code = open_source(&source, targets->rows);
  while (code == SQLITE_OK && (code = next_row(&source)) == SQLITE_ROW) {
    code = SQLITE_OK;
    struct value key;
    read_column(&source, targets->key, &key);
    if (key.class != NUMBER || key.is_real || !is_of_kind(&source, targets)) continue;
    uint64_t place = (uint64_t)key.integer - (uint64_t)targets->least;
    if (place <= range) set[place / 8] |= (unsigned char)(1 << place % 8);
  }
  close_source(&source);
  return code;
}

int instar_find_keys(
    const struct instar_rows *rows, int column, const struct instar_key_rows *targets, int *are_found)
{
  *are_found = 0;
  if (targets->greatest < targets->least) return SQLITE_DONE;
  uint64_t range = (uint64_t)targets->greatest - (uint64_t)targets->least;
  if (range >= LARGEST_SET) return SQLITE_DONE;
  unsigned char *set = calloc(range / 8 + 1, 1);
  if (!set) return SQLITE_NOMEM;
  int code = collect_keys(targets, range, set);
  if (code == SQLITE_DONE) {
    struct source source;
    int found = 1;
    code = open_source(&source, rows);
    while (found && code == SQLITE_OK && (code = next_row(&source)) == SQLITE_ROW) {
      code = SQLITE_OK;
      struct value value;
      read_column(&source, column, &value);
      if (value.class == NONE) continue;
      uint64_t place = value.class == NUMBER ? (uint64_t)value.integer - (uint64_t)targets->least : 0;
      found = value.class == NUMBER && !value.is_real && place <= range && set[place / 8] >> place % 8 & 1;
    }
    close_source(&source);
    *are_found = found && code == SQLITE_DONE;
    if (!found) code = SQLITE_DONE;
  }
  free(set);
  return code;
}

/* MARK: The order of keys */

static int compare_bytes(const struct value *left, size_t left_count, const struct value *right, size_t right_count)
{
  size_t common = left_count < right_count ? left_count : right_count;
  int order = common ? memcmp(left->bytes, right->bytes, common) : 0;
  return order ? order : (left_count > right_count) - (left_count < right_count);
}

/* As SQLite's NOCASE, which compares nothing behind a zero byte but the lengths. */
static int compare_letters(const struct value *left, const struct value *right)
{
  for (size_t offset = 0; offset < left->count && offset < right->count; offset++) {
    int order = lower(left->bytes[offset]) - lower(right->bytes[offset]);
    if (order) return order;
    if (left->bytes[offset] == 0) break;
  }
  return (left->count > right->count) - (left->count < right->count);
}

static int compare_numbers(const struct value *left, const struct value *right)
{
  /* Never equal: a whole number is an integer here, unless it is too large for one. */
  if (left->is_real && !right->is_real) return left->real < (double)right->integer ? -1 : 1;
  if (!left->is_real && right->is_real) return (double)left->integer < right->real ? -1 : 1;
  if (left->is_real) return (left->real > right->real) - (left->real < right->real);
  return (left->integer > right->integer) - (left->integer < right->integer);
}

/* Compares as SQLite compares keys (https://www.sqlite.org/datatype3.html, section 4). Returns a negative number where
 * `left` comes first, 0 where both are equal. */
static int compare(const struct value *left, const struct value *right, int collation)
{
  if (left->class != right->class) return (int)left->class - (int)right->class;
  switch (left->class) {
  case NONE: return 0;
  case NUMBER: return compare_numbers(left, right);
  case TEXT:
    if (collation == INSTAR_NOCASE) return compare_letters(left, right);
    if (collation == INSTAR_RTRIM) return compare_bytes(left, trimmed(left), right, trimmed(right));
  /* fall through */
  default: return compare_bytes(left, left->count, right, right->count);
  }
}

/* The key of one entry, with bytes of its own. */
struct key {
  struct value *values;
  unsigned char *bytes;
  size_t capacity;
};

/* Copies the bytes of a key's values to where they stay valid. Returns whether there is memory for them. */
static int keep(struct key *key, int count)
{
  size_t needed = 0;
  for (int position = 0; position < count; position++)
    if (key->values[position].class >= TEXT) needed += key->values[position].count;
  if (needed > key->capacity) {
    unsigned char *bytes = realloc(key->bytes, needed * 2);
    if (!bytes) return 0;
    key->bytes = bytes;
    key->capacity = needed * 2;
  }
  size_t offset = 0;
  for (int position = 0; position < count; position++) {
    struct value *value = &key->values[position];
    if (value->class < TEXT) continue;
    if (value->count) memcpy(key->bytes + offset, value->bytes, value->count);
    value->bytes = key->bytes + offset;
    offset += value->count;
  }
  return 1;
}

/* Whether one of the first values is NULL: a unique index allows such keys to repeat. */
static int has_null(const struct key *key, int count)
{
  for (int position = 0; position < count; position++)
    if (key->values[position].class == NONE) return 1;
  return 0;
}

static enum instar_index_problem problem(
    const struct key *previous, const struct key *current, const struct instar_index_order *order)
{
  int position = 0, found = 0;
  for (; position < order->term_count; position++) {
    found = compare(&previous->values[position], &current->values[position], order->terms[position].collation);
    if (found) break;
  }
  if (order->is_unique && position >= order->key_count && !has_null(current, order->key_count))
    return INSTAR_INDEX_REPEATS_KEY;
  if (found && order->terms[position].is_descending) found = -found;
  return found < 0 ? INSTAR_INDEX_IS_SOUND : INSTAR_INDEX_IS_NOT_IN_ORDER;
}

int instar_scan_index(
    const struct instar_rows *entries, const struct instar_index_order *order, const uint64_t keys[2],
    struct instar_fingerprint *fingerprint, enum instar_index_problem *found)
{
  struct key known[2] = {{0}, {0}};
  *found = INSTAR_INDEX_IS_SOUND;
  struct source source;
  int code = open_source(&source, entries);
  if (code != SQLITE_OK) goto end;
  code = SQLITE_NOMEM;
  size_t terms = (size_t)order->term_count;
  known[0].values = calloc(terms, sizeof(struct value));
  known[1].values = calloc(terms, sizeof(struct value));
  if (!known[0].values || !known[1].values) goto end;
  while ((code = next_row(&source)) == SQLITE_ROW) {
    struct key *current = &known[fingerprint->count & 1], *previous = &known[~fingerprint->count & 1];
    uint64_t hash = keys[0];
    for (int position = 0; position < order->term_count; position++) {
      read_column(&source, position, &current->values[position]);
      hash = mix_value(hash, &current->values[position], keys);
    }
    fingerprint->count += 1;
    fingerprint->sum += hash;
    if (fingerprint->count > 1) {
      *found = problem(previous, current, order);
      if (*found != INSTAR_INDEX_IS_SOUND) break;
    }
    if (!keep(current, order->term_count)) {
      code = SQLITE_NOMEM;
      break;
    }
  }
end:
  close_source(&source);
  for (int key = 0; key < 2; key++) {
    free(known[key].values);
    free(known[key].bytes);
  }
  return code == SQLITE_ROW ? SQLITE_DONE : code;
}
