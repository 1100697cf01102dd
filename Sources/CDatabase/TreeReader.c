#include "TreeReader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  INDEX_INTERIOR = 2,
  TABLE_INTERIOR = 5,
  INDEX_LEAF = 10,
  TABLE_LEAF = 13,
  FILE_HEADER = 100,
  /* The longest record that is read: as long as the longest value on a connection that reads. */
  LONGEST_RECORD = 64 << 20,
  /* After so many pages the reader looks whether its time is used up. */
  PAGES_PER_CALL = 256,
  /* A strict reader reads no more pages: what a probe reads is small. */
  STRICT_PAGES = 2048,
  /* SQLite uses the bytes from here on for locks, and never the page that has them. */
  LOCK_BYTES = 0x40000000
};

static uint32_t two_bytes(const unsigned char *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }

static uint32_t four_bytes(const unsigned char *bytes)
{
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads a number of one to nine bytes. Returns what follows; NULL if it goes beyond `end`. */
static const unsigned char *read_varint(const unsigned char *bytes, const unsigned char *end, uint64_t *number)
{
  if (bytes < end && *bytes < 0x80) {
    *number = *bytes;
    return bytes + 1;
  }
  uint64_t found = 0;
  for (int count = 0; bytes < end; count++, bytes++) {
    if (count == 8) {
      *number = found << 8 | *bytes;
      return bytes + 1;
    }
    found = found << 7 | (*bytes & 0x7f);
    if (*bytes < 0x80) {
      *number = found;
      return bytes + 1;
    }
  }
  return NULL;
}

/* Returns whether the file has all of the bytes. */
static int read_fully(int descriptor, unsigned char *target, size_t size, sqlite3_int64 offset)
{
  while (size > 0) {
    ssize_t count = pread(descriptor, target, size, (off_t)offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return 0;
    target += count;
    size -= (size_t)count;
    offset += count;
  }
  return 1;
}

static int read_bytes(struct tree_reader *reader, void *target, uint32_t page, uint32_t size)
{
  if (page == 0 || page > reader->page_count || reader->budget == 0) return SQLITE_CORRUPT;
  reader->budget--;
  if (reader->budget % PAGES_PER_CALL == 0 && instar_budget_is_used_up()) return SQLITE_INTERRUPT;
  sqlite3_int64 offset = (sqlite3_int64)(page - 1) * reader->page_size;
  if (reader->file) return reader->file->pMethods->xRead(reader->file, target, (int)size, offset);
  if (page == LOCK_BYTES / reader->page_size + 1) return SQLITE_CORRUPT;
  return read_fully(reader->descriptor, target, size, offset) ? SQLITE_OK : SQLITE_IOERR;
}

/* Checks the cells of an inner page of a table as SQLite does with cell_size_check. */
static int require_sound_cells(const struct tree_reader *reader, const struct tree_level *level)
{
  const unsigned char *end = level->page + reader->usable;
  uint32_t list = level->header + 12;
  for (uint32_t cell = 0; cell < level->cells; cell++) {
    uint32_t offset = two_bytes(level->page + list + 2 * cell);
    uint64_t key;
    if (offset < list + 2 * level->cells || offset + 5 > reader->usable ||
        !read_varint(level->page + offset + 4, end, &key))
      return SQLITE_CORRUPT;
  }
  return SQLITE_OK;
}

/* Goes down to a page. */
static int enter(struct tree_reader *reader, uint32_t number)
{
  if (reader->depth == TREE_DEPTH) return SQLITE_CORRUPT;
  struct tree_level *level = &reader->levels[reader->depth];
  if (!level->page && !(level->page = malloc(reader->page_size))) return SQLITE_NOMEM;
  int code = read_bytes(reader, level->page, number, reader->page_size);
  if (code != SQLITE_OK) return code;
  level->header = number == 1 ? FILE_HEADER : 0;
  int type = level->page[level->header];
  if (type != (reader->is_index ? INDEX_INTERIOR : TABLE_INTERIOR) &&
      type != (reader->is_index ? INDEX_LEAF : TABLE_LEAF))
    return SQLITE_CORRUPT;
  level->is_leaf = type == INDEX_LEAF || type == TABLE_LEAF;
  level->cells = two_bytes(level->page + level->header + 3);
  if (level->header + (level->is_leaf ? 8 : 12) + 2 * level->cells > reader->usable) return SQLITE_CORRUPT;
  if (reader->is_strict) {
    /* SQLite allows an empty tree, and no empty page below the root. Page 1 has less room than its only child, so it may
     * have no key. */
    if (level->cells == 0 && (reader->depth > 0 || (!level->is_leaf && number != 1))) return SQLITE_CORRUPT;
    if (level->cells > (reader->page_size - 8) / 6) return SQLITE_CORRUPT;
    if (!level->is_leaf && (code = require_sound_cells(reader, level)) != SQLITE_OK) return code;
  }
  level->step = 0;
  level->steps = level->is_leaf ? level->cells : reader->is_index ? 2 * level->cells + 1 : level->cells + 1;
  reader->depth++;
  return SQLITE_OK;
}

static int allocate_columns(struct tree_reader *reader, int column_count)
{
  reader->column_count = column_count;
  reader->types = calloc((size_t)column_count + 1, sizeof *reader->types);
  reader->offsets = calloc((size_t)column_count + 1, sizeof *reader->offsets);
  return reader->types && reader->offsets ? SQLITE_OK : SQLITE_NOMEM;
}

int tree_reader_open(
    struct tree_reader *reader, struct sqlite3 *database, uint32_t root, int is_index, int column_count,
    int missing_is_null)
{
  memset(reader, 0, sizeof *reader);
  reader->is_index = is_index;
  reader->missing_is_null = missing_is_null;
  /* The pages that the transaction has changed are in SQLite's cache. */
  if (sqlite3_txn_state(database, "main") == SQLITE_TXN_WRITE) return SQLITE_ERROR;
  int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &reader->file);
  if (code != SQLITE_OK) return code;
  if (!reader->file || !reader->file->pMethods) return SQLITE_ERROR;
  unsigned char header[FILE_HEADER];
  code = reader->file->pMethods->xRead(reader->file, header, sizeof header, 0);
  if (code != SQLITE_OK) return code;
  int is_immutable = sqlite3_uri_boolean(sqlite3_db_filename(database, "main"), "immutable", 0);
  int uses_log = header[18] != 1 || header[19] != 1;
  if (memcmp(header, "SQLite format 3", 16) || (uses_log && !is_immutable)) return SQLITE_ERROR;
  reader->page_size = two_bytes(header + 16) == 1 ? 65536 : two_bytes(header + 16);
  if (reader->page_size < 512 || (reader->page_size & (reader->page_size - 1))) return SQLITE_CORRUPT;
  reader->usable = reader->page_size - header[20];
  sqlite3_int64 size = 0;
  code = reader->file->pMethods->xFileSize(reader->file, &size);
  if (code != SQLITE_OK) return code;
  if (reader->usable < 480 || size / reader->page_size > UINT32_MAX) return SQLITE_CORRUPT;
  reader->page_count = (uint32_t)(size / reader->page_size);
  reader->budget = reader->page_count;
  code = allocate_columns(reader, column_count);
  return code == SQLITE_OK ? enter(reader, root) : code;
}

int tree_reader_open_pages(
    struct tree_reader *reader, const struct instar_pages *pages, uint32_t root, int column_count)
{
  memset(reader, 0, sizeof *reader);
  reader->descriptor = pages->descriptor;
  reader->is_strict = 1;
  reader->page_size = pages->page_size;
  reader->usable = pages->usable;
  reader->page_count = pages->page_count;
  reader->budget = STRICT_PAGES;
  int code = allocate_columns(reader, column_count);
  return code == SQLITE_OK ? enter(reader, root) : code;
}

int instar_file_format(struct sqlite3 *database)
{
  sqlite3_file *file = NULL;
  unsigned char header[FILE_HEADER];
  int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK || !file || !file->pMethods) return 0;
  return file->pMethods->xRead(file, header, sizeof header, 0) == SQLITE_OK ? (int)four_bytes(header + 44) : 0;
}

int instar_pages_open(struct instar_pages *pages, int descriptor, int64_t size)
{
  unsigned char header[FILE_HEADER];
  if (!read_fully(descriptor, header, sizeof header, 0)) return SQLITE_IOERR;
  memset(pages, 0, sizeof *pages);
  pages->descriptor = descriptor;
  pages->page_size = two_bytes(header + 16) == 1 ? 65536 : two_bytes(header + 16);
  pages->usable = pages->page_size - header[20];
  pages->page_count = four_bytes(header + 28);
  pages->uses_log = header[18] == 2;
  pages->user_version = (int32_t)four_bytes(header + 60);
  int is_sound = memcmp(header, "SQLite format 3", 16) == 0 && pages->page_size >= 512 &&
                 (pages->page_size & (pages->page_size - 1)) == 0 && pages->usable >= 480 &&
                 (header[18] == 1 || header[18] == 2) && header[19] == header[18] &&
                 /* The share of a page that a cell may have: other values were never allowed. */
                 header[21] == 64 && header[22] == 32 && header[23] == 32 &&
                 /* The number of pages counts only where the last writer wrote it. */
                 memcmp(header + 24, header + 92, 4) == 0 && pages->page_count > 0 &&
                 (int64_t)pages->page_count <= size / pages->page_size &&
                 /* The format since 2006, and UTF-8. */
                 four_bytes(header + 44) == 4 && four_bytes(header + 56) == 1;
  return is_sound ? SQLITE_OK : SQLITE_ERROR;
}

void tree_reader_close(struct tree_reader *reader)
{
  for (int level = 0; level < TREE_DEPTH; level++) free(reader->levels[level].page);
  free(reader->joined);
  free(reader->types);
  free(reader->offsets);
}

/* Checks that rowids ascend. SQLite does not, but it looks for single rows by them. */
static int require_order(struct tree_reader *reader, sqlite3_int64 rowid)
{
  if (reader->has_last_rowid && rowid <= reader->last_rowid) return SQLITE_CORRUPT;
  reader->has_last_rowid = 1;
  reader->last_rowid = rowid;
  return SQLITE_OK;
}

/* Finds the record of a cell, as far as it is on the page of the cell. */
static int find_record(struct tree_reader *reader, const struct tree_level *level, uint32_t cell)
{
  const unsigned char *page = level->page, *end = page + reader->usable;
  uint32_t list = level->header + (level->is_leaf ? 8 : 12);
  uint32_t offset = two_bytes(page + list + 2 * cell);
  if (offset < list + 2 * level->cells || offset + 4 > reader->usable) return SQLITE_CORRUPT;
  const unsigned char *bytes = page + offset;
  if (!level->is_leaf) bytes += 4;
  if (bytes >= end || !(bytes = read_varint(bytes, end, &reader->record_size))) return SQLITE_CORRUPT;
  uint64_t rowid = 0;
  if (!reader->is_index && !(bytes = read_varint(bytes, end, &rowid))) return SQLITE_CORRUPT;
  reader->rowid = (sqlite3_int64)rowid;
  if (reader->record_size > LONGEST_RECORD) return SQLITE_TOOBIG;
  uint32_t usable = reader->usable, least = (usable - 12) * 32 / 255 - 23;
  uint32_t most = reader->is_index ? (usable - 12) * 64 / 255 - 23 : usable - 35;
  reader->local_size = reader->record_size;
  if (reader->record_size > most) {
    uint64_t kept = least + (reader->record_size - least) % (usable - 4);
    reader->local_size = kept <= most ? kept : least;
  }
  int goes_on = reader->local_size < reader->record_size;
  if ((uint64_t)(end - bytes) < reader->local_size + (goes_on ? 4 : 0)) return SQLITE_CORRUPT;
  reader->record = bytes;
  reader->page_part = reader->local_size;
  reader->overflow = goes_on ? four_bytes(bytes + reader->local_size) : 0;
  return reader->is_strict ? require_order(reader, reader->rowid) : SQLITE_OK;
}

static uint64_t size_of(uint64_t type)
{
  static const uint64_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < 12 ? sizes[type] : (type - 12) / 2;
}

/* Checks that a record is as long as its header says, and that each wanted column begins on the page of the record's
 * begin: SQLite looks for pages further on by the map of pages, if the file has one. */
static int require_whole_record(const struct tree_reader *reader)
{
  uint64_t header, type, offset;
  const unsigned char *bytes = read_varint(reader->record, reader->record + reader->local_size, &header);
  if (!bytes || header > reader->local_size) return SQLITE_CORRUPT;
  offset = header;
  const unsigned char *end = reader->record + header;
  for (int column = 0; bytes < end; column++) {
    if (!(bytes = read_varint(bytes, end, &type)) || type == 10 || type == 11) return SQLITE_CORRUPT;
    if (column < reader->column_count && offset > reader->page_part) return SQLITE_CORRUPT;
    if (size_of(type) > reader->record_size - offset) return SQLITE_CORRUPT;
    offset += size_of(type);
  }
  return bytes == end && offset == reader->record_size ? SQLITE_OK : SQLITE_CORRUPT;
}

/* Copies the whole record to one place. */
static int join_record(struct tree_reader *reader)
{
  if (reader->record_size > reader->joined_capacity) {
    unsigned char *joined = realloc(reader->joined, reader->record_size * 2);
    if (!joined) return SQLITE_NOMEM;
    reader->joined = joined;
    reader->joined_capacity = reader->record_size * 2;
  }
  memcpy(reader->joined, reader->record, reader->local_size);
  uint64_t known = reader->local_size;
  uint32_t next = reader->overflow;
  unsigned char *page = malloc(reader->page_size);
  int code = page ? SQLITE_OK : SQLITE_NOMEM;
  while (code == SQLITE_OK && known < reader->record_size) {
    code = read_bytes(reader, page, next, reader->page_size);
    if (code != SQLITE_OK) break;
    uint64_t count = reader->usable - 4;
    if (count > reader->record_size - known) count = reader->record_size - known;
    memcpy(reader->joined + known, page + 4, count);
    known += count;
    next = four_bytes(page);
  }
  free(page);
  reader->record = reader->joined;
  reader->local_size = reader->record_size;
  return code;
}

/* Reads the types of the wanted columns. */
static int read_types(struct tree_reader *reader)
{
  for (;;) {
    const unsigned char *end = reader->record + reader->local_size;
    uint64_t header;
    const unsigned char *bytes = read_varint(reader->record, end, &header);
    if (!bytes) return SQLITE_CORRUPT;
    if (header > reader->record_size) return SQLITE_CORRUPT;
    if (header <= reader->local_size) {
      end = reader->record + header;
      uint64_t offset = header;
      int column = 0;
      for (; column < reader->column_count; column++) {
        if (bytes == end) {
          /* The column was added after the row was written. */
          if (!reader->missing_is_null) return SQLITE_ERROR;
          reader->types[column] = 0;
          reader->offsets[column] = 0;
          continue;
        }
        uint64_t type;
        if (!(bytes = read_varint(bytes, end, &type)) || type == 10 || type == 11) return SQLITE_CORRUPT;
        reader->types[column] = type;
        reader->offsets[column] = offset;
        if (size_of(type) > reader->record_size - offset) return SQLITE_CORRUPT;
        offset += size_of(type);
      }
      /* As SQLite checks it where a wanted column is the last one. */
      if (bytes == end && offset != reader->record_size) return SQLITE_CORRUPT;
      if (offset <= reader->local_size) return SQLITE_OK;
    }
    if (reader->local_size == reader->record_size) return SQLITE_CORRUPT;
    int code = join_record(reader);
    if (code != SQLITE_OK) return code;
  }
}

int tree_reader_next(struct tree_reader *reader)
{
  while (reader->depth > 0) {
    struct tree_level *level = &reader->levels[reader->depth - 1];
    if (level->step == level->steps) {
      reader->depth--;
      continue;
    }
    uint32_t step = level->step++;
    int is_cell = level->is_leaf || (reader->is_index && step % 2);
    uint32_t number = !level->is_leaf && reader->is_index ? step / 2 : step;
    if (is_cell) {
      int code = find_record(reader, level, number);
      if (code == SQLITE_OK) code = read_types(reader);
      if (code == SQLITE_OK && reader->is_strict) code = require_whole_record(reader);
      return code == SQLITE_OK ? SQLITE_ROW : code;
    }
    if (reader->is_strict && number > 0) {
      /* The key beside the child before: not below the rowids there, and below those that follow. */
      uint64_t key = 0;
      uint32_t offset = two_bytes(level->page + level->header + 12 + 2 * (number - 1));
      read_varint(level->page + offset + 4, level->page + reader->usable, &key);
      if (!reader->has_last_rowid || (sqlite3_int64)key < reader->last_rowid) return SQLITE_CORRUPT;
      reader->last_rowid = (sqlite3_int64)key;
    }
    const unsigned char *child = level->page + level->header + 8;
    if (number < level->cells) {
      uint32_t offset = two_bytes(level->page + level->header + 12 + 2 * number);
      if (offset + 4 > reader->usable) return SQLITE_CORRUPT;
      child = level->page + offset;
    }
    int code = enter(reader, four_bytes(child));
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_DONE;
}

void tree_reader_value(const struct tree_reader *reader, int column, struct value *value)
{
  uint64_t type = reader->types[column], size = size_of(type);
  const unsigned char *bytes = reader->record + reader->offsets[column];
  value->is_real = 0;
  if (type >= 12) {
    value->class = type % 2 ? TEXT : BLOB;
    value->bytes = bytes;
    value->count = size;
    return;
  }
  value->class = type == 0 ? NONE : NUMBER;
  if (type >= 8) {
    value->integer = (sqlite3_int64)type - 8;
    return;
  }
  uint64_t bits = size > 0 && bytes[0] & 0x80 ? UINT64_MAX : 0;
  for (uint64_t offset = 0; offset < size; offset++) bits = bits << 8 | bytes[offset];
  if (type != 7) {
    value->integer = (sqlite3_int64)bits;
    return;
  }
  double real;
  memcpy(&real, &bits, sizeof real);
  /* SQLite reads NaN as NULL. */
  if (real != real) value->class = NONE;
  set_real(value, real);
}
