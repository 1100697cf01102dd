"""sqlite-utils on one store: ALTER TABLE to add a column, 'transform' (a new table, all rows copied) otherwise."""

import sqlite_utils

from common import reversed_words, run


def add(path):
    sqlite_utils.Database(path)["note"].add_column("pinned", int)


def rename(path):
    sqlite_utils.Database(path)["note"].transform(rename={"title": "heading"})


def drop(path):
    sqlite_utils.Database(path)["note"].transform(drop={"created"})


def objects(path):
    sqlite_utils.Database(path)["note"].convert("content", reversed_words, output="content2", output_type=str, drop=True)


run({"add": add, "rename": rename, "drop": drop, "objects": objects})
