/* The rows of small tables, read from the pages of a file without a connection: what a probe of a store needs. */
#include "TreeReader.h"

#include <stdlib.h>
#include <string.h>

enum { KIND_NULL, KIND_INTEGER, KIND_TEXT = 3, KIND_BLOB };

static int append(struct instar_row_list *list, const void *bytes, size_t count)
{
  if (count > list->limit - list->count) return SQLITE_TOOBIG;
  if (list->count + count > list->capacity) {
    size_t capacity = (list->count + count) * 2;
    unsigned char *longer = realloc(list->bytes, capacity);
    if (!longer) return SQLITE_NOMEM;
    list->bytes = longer;
    list->capacity = capacity;
  }
  if (count > 0) memcpy(list->bytes + list->count, bytes, count);
  list->count += count;
  return SQLITE_OK;
}

static int append_number(struct instar_row_list *list, int64_t number)
{
  unsigned char kind = KIND_INTEGER;
  int code = append(list, &kind, 1);
  return code == SQLITE_OK ? append(list, &number, sizeof number) : code;
}

enum { REAL_TYPE = 7 };

/* Appends a column of the current row. A real is left to SQLite, also a whole one: its text has a point. */
static int append_column(struct instar_row_list *list, const struct tree_reader *reader, int column)
{
  if (reader->types[column] == REAL_TYPE) return SQLITE_MISMATCH;
  struct value read, *value = &read;
  tree_reader_value(reader, column, value);
  if (value->class == NUMBER) return append_number(list, value->integer);
  unsigned char kind = value->class == NONE ? KIND_NULL : value->class == TEXT ? KIND_TEXT : KIND_BLOB;
  int code = append(list, &kind, 1);
  if (code != SQLITE_OK || kind == KIND_NULL) return code;
  int64_t size = (int64_t)value->count;
  code = append(list, &size, sizeof size);
  return code == SQLITE_OK ? append(list, value->bytes, value->count) : code;
}

int instar_pages_read(
    const struct instar_pages *pages, uint32_t root, int column_count, struct instar_row_list *list)
{
  struct tree_reader reader;
  int code = tree_reader_open_pages(&reader, pages, root, column_count);
  while (code == SQLITE_OK && (code = tree_reader_next(&reader)) == SQLITE_ROW) {
    code = append_number(list, reader.rowid);
    for (int column = 0; code == SQLITE_OK && column < column_count; column++)
      code = append_column(list, &reader, column);
  }
  tree_reader_close(&reader);
  return code;
}

static int compare_roots(const void *left, const void *right)
{
  uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
  return one < other ? -1 : one > other;
}

/* Returns whether no two objects have the same tree. */
static int are_distinct(const uint32_t *roots, size_t count)
{
  uint32_t *sorted = malloc((count + 1) * sizeof *sorted);
  if (!sorted) return 0;
  if (count > 0) memcpy(sorted, roots, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_roots);
  int found = 1;
  for (size_t index = 1; index < count; index++)
    if (sorted[index] != 0 && sorted[index] == sorted[index - 1]) found = 0;
  free(sorted);
  return found;
}

int instar_pages_read_schema(
    const struct instar_pages *pages, struct instar_row_list *list, uint32_t **roots, size_t *root_count)
{
  enum { TYPE, NAME, TABLE, ROOT, STATEMENT, COLUMNS };
  static const int order[] = {TYPE, NAME, TABLE, STATEMENT};
  size_t capacity = 0;
  *roots = NULL;
  *root_count = 0;
  struct tree_reader reader;
  int code = tree_reader_open_pages(&reader, pages, 1, COLUMNS);
  while (code == SQLITE_OK && (code = tree_reader_next(&reader)) == SQLITE_ROW) {
    code = SQLITE_OK;
    for (size_t index = 0; code == SQLITE_OK && index < sizeof order / sizeof *order; index++)
      code = append_column(list, &reader, order[index]);
    if (code != SQLITE_OK) break;
    struct value value;
    tree_reader_value(&reader, ROOT, &value);
    int is_page = value.class == NUMBER && !value.is_real && value.integer >= 0 && value.integer != 1 &&
                  value.integer <= pages->page_count;
    if (!is_page) code = SQLITE_CORRUPT;
    if (code == SQLITE_OK && *root_count == capacity) {
      capacity = capacity * 2 + 64;
      uint32_t *longer = realloc(*roots, capacity * sizeof *longer);
      if (longer) *roots = longer;
      else code = SQLITE_NOMEM;
    }
    if (code != SQLITE_OK) break;
    (*roots)[(*root_count)++] = (uint32_t)value.integer;
    code = append_number(list, value.integer > 0);
  }
  tree_reader_close(&reader);
  if (code == SQLITE_DONE && !are_distinct(*roots, *root_count)) code = SQLITE_CORRUPT;
  return code;
}
