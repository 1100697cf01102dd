/* Reads the rows of one b-tree from the file, without SQLite's cursors and statements: a third of the time.
 *
 * The file format is documented (https://www.sqlite.org/fileformat2.html, sections 1.5, 1.6 and 2.1). The pages may be
 * damaged or hostile: each read is checked against the bounds of its page, and the reader reads at most as many pages as
 * the file has. Where anything is not as documented, it stops with an error, and the caller reads the tree by a
 * statement.
 *
 * Without a connection the reader is strict: whatever SQLite checks when it reads such a tree with cell_size_check, the
 * reader checks too, and more. So a tree that it reads to the end is one that SQLite reads too, with the same rows in the
 * same order. */
#ifndef TREE_READER_H
#define TREE_READER_H

#include "CDatabase.h"
#include "Value.h"

#include <sqlite3.h>

enum { TREE_DEPTH = 20 };

struct tree_level {
  unsigned char *page;
  /* Where the page's own header begins: behind the file's header on page 1. */
  uint32_t header;
  uint32_t cells;
  int is_leaf;
  /* The next step of `steps`: a child, or a cell, or both in turns on the inner pages of an index. */
  uint32_t step, steps;
};

struct tree_reader {
  /* NULL where the pages are read by the descriptor. */
  sqlite3_file *file;
  int descriptor;
  int is_strict;
  uint32_t page_size, usable, page_count;
  /* How many pages may still be read. */
  uint64_t budget;
  int is_index;
  int depth;
  struct tree_level levels[TREE_DEPTH];

  /* Of the current row. */
  sqlite3_int64 rowid;
  /* Strict only: the rowids that may follow are greater than this one. */
  sqlite3_int64 last_rowid;
  int has_last_rowid;
  const unsigned char *record;
  uint64_t record_size, local_size;
  /* How much of it is on the page of its cell. */
  uint64_t page_part;
  uint32_t overflow;
  /* The whole record, if it goes on in other pages and a wanted value is there. */
  unsigned char *joined;
  uint64_t joined_capacity;

  /* The first columns of the record, as far as they are wanted. */
  int column_count, missing_is_null;
  uint64_t *types, *offsets;
};

/* Prepares to read a b-tree of the main database, which no one may write meanwhile: in a transaction, or immutable.
 *
 * `column_count`: how many columns of each record are read; `missing_is_null`: see `struct instar_rows`.
 * Returns SQLITE_OK; SQLITE_ERROR where a write-ahead log or a transaction that this connection has begun to write may
 * have other pages; another code of SQLite. Call tree_reader_close() also after an error. */
int tree_reader_open(
    struct tree_reader *reader, struct sqlite3 *database, uint32_t root, int is_index, int column_count,
    int missing_is_null);

/* Prepares to read a table's b-tree of a file that no connection of this process has open, strictly. */
int tree_reader_open_pages(
    struct tree_reader *reader, const struct instar_pages *pages, uint32_t root, int column_count);

void tree_reader_close(struct tree_reader *reader);

/* Returns SQLITE_ROW, SQLITE_DONE, or an error. Rows come in the order of the tree. */
int tree_reader_next(struct tree_reader *reader);

/* A column of the current row. Its bytes are valid until the next step. */
void tree_reader_value(const struct tree_reader *reader, int column, struct value *value);

#endif
