"""The stores that are tortured, written by Python's sqlite3 alone, and what they must hold before and after a run.

`contents(recipe)` is the truth: the rows of a store at 1.0.0 and at 2.0.0, computed here and nowhere else. The history
that some stores of Core Data keep is in history.py. Nothing in these files asks Instar.
"""

import base64
import hashlib
import os
import plistlib
import random
import sqlite3
import uuid
from dataclasses import dataclass

import history

FORMATS = ("coredata", "plain")

OLD, NEW = "1.0.0", "2.0.0"

_PARCEL = (
    "CREATE TABLE ZPARCEL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSIZE INTEGER, ZSHELF INTEGER, ")
_ACCOUNT = "CREATE TABLE account (id INTEGER PRIMARY KEY NOT NULL, owner TEXT NOT NULL, "
_COREDATA = (
    "CREATE TABLE ZSHELF ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBEHAVIOUR VARCHAR )",
    "CREATE INDEX ZPARCEL_ZSHELF_INDEX ON ZPARCEL (ZSHELF)",
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
_PLAIN = (
    "CREATE UNIQUE INDEX account_owner ON account (owner)",
    "CREATE TABLE payment (id INTEGER PRIMARY KEY NOT NULL, amount INTEGER NOT NULL, "
    "account_id INTEGER REFERENCES account (id) ON DELETE SET NULL)",
    "CREATE INDEX payment_account ON payment (account_id)",
    "CREATE TABLE setting (id INTEGER PRIMARY KEY NOT NULL, behaviour TEXT NOT NULL)")
# The whole schema of each version. Whatever else a store has afterwards was not asked for.
SCHEMAS = {
    ("coredata", OLD): (_PARCEL + "ZNAME VARCHAR, ZCONTENT BLOB )", *_COREDATA),
    ("coredata", NEW): (_PARCEL + "ZLABEL VARCHAR, ZNAME VARCHAR, ZCONTENT BLOB )", *_COREDATA),
    ("plain", OLD): (_ACCOUNT + "balance INTEGER NOT NULL)", *_PLAIN),
    ("plain", NEW): (_ACCOUNT + "cents INTEGER NOT NULL, label TEXT)", *_PLAIN),
}
# The new schema of a plan without code, where it differs: no table is rebuilt, and a new column comes last.
LIGHT_SCHEMAS = {"coredata": (_PARCEL + "ZNAME VARCHAR, ZCONTENT BLOB , ZLABEL VARCHAR)", *_COREDATA)}
# So long are the texts of a light store that it has the 2,000 small pages from which on Instar compares pages.
LIGHT_PAGE_SIZE, LIGHT_PADDING = 512, {"coredata": 45_000, "plain": 22_500}


@dataclass
class Recipe:
    """What a store is made from. The same recipe makes the same store."""

    seed: int
    format: str = "coredata"
    journal: str = "delete"
    # How the app left the store: "clean", it closed it; "pending", it died with committed frames in the -wal; "hot", it
    # died in the middle of a transaction.
    start: str = "clean"
    rows: int = 24
    external: bool = False
    behaviour: str = ""
    page_size: int = 4096
    padding: int = 0
    # Whether its plan has no code.
    light: bool = False
    # Whether it is so small that such a plan changes it in a transaction, without a clone.
    small: bool = False
    # Whether most of its pages are free, because rows were deleted.
    free: bool = False
    # The key of a row, and the word in its name that tells the stages of Kinds.swift what to do.
    marked: int = 0
    mark: str = ""
    # Core Data's stores have 2, incremental; None: what the format has.
    auto_vacuum: int | None = None
    # How many changes of its rows the history of a store of Core Data has, about; None: the store keeps no history.
    history: int | None = None

    def lighten(self, small):
        """Makes it the recipe of a store whose stages write the schema alone."""
        self.light, self.small = True, small
        if small:
            self.external = False
        else:
            self.rows, self.page_size, self.padding = 24, LIGHT_PAGE_SIZE, LIGHT_PADDING[self.format]

    def word(self, key):
        """The word in the name of a row."""
        return f"!{self.mark}! " if key == self.marked else ""

    @property
    def is_compacted(self):
        """Whether its migration finds more free pages in the clone than stay there."""
        return self.free and not self.light and self.auto_vacuum != 1

    @staticmethod
    def draw(chance: random.Random, **fixed):
        """Draws a recipe; `fixed` overrides what was drawn."""
        recipe = Recipe(seed=chance.randrange(1 << 30))
        recipe.format = chance.choice(FORMATS)
        recipe.journal = chance.choice(("delete", "wal", "wal", "truncate", "persist", "delete"))
        recipe.start = chance.choice(("clean", "clean", "pending"))
        if recipe.start == "pending" and recipe.journal != "wal":
            recipe.start = "hot"
        recipe.rows = chance.choice((3, 24, 24, 120))
        recipe.external = recipe.format == "coredata" and chance.random() < 0.4
        recipe.page_size = chance.choice((4096, 4096, 1024))
        for name, value in fixed.items():
            setattr(recipe, name, value)
        if recipe.format == "plain":
            recipe.external = False
        if recipe.start == "hot" and recipe.journal == "wal":
            recipe.start = "pending"
        if recipe.start == "pending" and recipe.journal != "wal":
            recipe.start = "hot"
        return recipe


@dataclass
class Contents:
    """The rows of one version, in the form in which `judge.py` reports them."""

    version: str
    schema: list
    rows: dict


def digest(data):
    return None if data is None else hashlib.sha256(data).hexdigest()[:16]


def _parcels(recipe):
    """(key, name, size, content, shelf) of each parcel at 1.0.0."""
    chance = random.Random(recipe.seed)
    parcels = []
    for key in range(1, recipe.rows + 1):
        content = None
        if chance.random() < 0.5:
            large = recipe.external and chance.random() < 0.5
            content = chance.randbytes(150_000 if large else chance.randrange(1, 400))
        name = f"parcel {key} " + recipe.word(key) + "x" * (recipe.padding + chance.randrange(60))
        parcels.append((key, name, key * 3, content, 1 + key % 2))
    return parcels


def _accounts(recipe):
    chance = random.Random(recipe.seed)
    accounts = [
        (key, f"owner {key} " + recipe.word(key) + "y" * (recipe.padding + chance.randrange(60)), key * 7)
        for key in range(1, recipe.rows + 1)]
    payments = [(key, key * 11, 1 + key % recipe.rows) for key in range(1, 2 * recipe.rows + 1)]
    return accounts, payments


def contents(recipe):
    """Returns what the store holds at its old version and at its new one."""
    if recipe.format == "coredata":
        return coredata_contents(recipe, _parcels(recipe))
    return plain_contents(recipe, *_accounts(recipe))


def _versions(recipe, old, new):
    schemas = {version: SCHEMAS[recipe.format, version] for version in (OLD, NEW)}
    if recipe.light:
        # Only the history has other values.
        new = {**old, **{table: rows for table, rows in new.items() if table == "change"}}
        schemas[NEW] = LIGHT_SCHEMAS.get(recipe.format, schemas[NEW])
    more = history.SCHEMA if recipe.history is not None else ()
    return tuple(Contents(version, sorted((*schemas[version], *more)), rows) for version, rows in ((OLD, old), (NEW, new)))


def coredata_contents(recipe, parcels):
    shelves = [[1, recipe.behaviour], [2, "second"]]
    old = [[k, n, s, None, digest(c), f] for k, n, s, c, f in parcels]
    new = []
    for key, name, size, content, shelf in parcels:
        size += 1000
        if size % 4 == 0 and content is not None:
            content = content[::-1]
        new.append([key, name, size, f"parcel of {size}", digest(content), shelf])
    before, after = history.contents(recipe) if recipe.history is not None else ({}, {})
    return _versions(
        recipe, {"shelf": shelves, "parcel": old, **before}, {"shelf": shelves, "parcel": new, **after})


def plain_contents(recipe, accounts, payments):
    setting = [[1, recipe.behaviour]]
    payments = [list(payment) for payment in payments]
    old = [[k, o, b, None] for k, o, b in accounts]
    new = [[k, o, b + 1000, f"account of {b + 1000}"] for k, o, b in accounts]
    return _versions(
        recipe, {"account": old, "setting": setting, "payment": payments},
        {"account": new, "setting": setting, "payment": [list(payment) for payment in payments]})


# Making a store

def make(path, recipe):
    """Writes the store and its side files."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA page_size = {recipe.page_size}")
    db.execute("PRAGMA synchronous = OFF")
    auto_vacuum = recipe.auto_vacuum if recipe.auto_vacuum is not None else 2 * (recipe.format == "coredata")
    db.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
    db.execute(f"PRAGMA journal_mode = {recipe.journal}")
    db.execute("BEGIN")
    for statement in sorted(SCHEMAS[recipe.format, OLD], key=lambda text: "INDEX" in text):
        db.execute(statement)
    (_make_coredata if recipe.format == "coredata" else _make_plain)(db, path, recipe)
    db.execute("COMMIT")
    if recipe.free:
        _free_pages(db, recipe)
    db.close()
    if recipe.start != "clean":
        _leave_unfinished(path, recipe)


def _make_coredata(db, path, recipe):
    names = random.Random(recipe.seed + 1)
    for key, name, size, content, shelf in _parcels(recipe):
        value = None
        if content is not None and len(content) > 100_000:
            file = str(uuid.UUID(int=names.getrandbits(128), version=4)).upper()
            folder = external_folder(path)
            os.makedirs(folder, mode=0o755, exist_ok=True)
            with open(os.path.join(folder, file), "wb") as stream:
                stream.write(content)
            value = b"\x02" + file.encode() + b"\x00"
        elif content is not None:
            value = b"\x01" + content
        db.execute("INSERT INTO ZPARCEL VALUES (?, 1, 1, ?, ?, ?, ?)", (key, size, shelf, name, value))
    db.execute("INSERT INTO ZSHELF VALUES (1, 2, 1, ?), (2, 2, 1, 'second')", (recipe.behaviour,))
    last = recipe.rows + (history.DELETED if recipe.history else 0)
    db.execute("INSERT INTO Z_PRIMARYKEY VALUES (1, 'Parcel', 0, ?), (2, 'Shelf', 0, 2)", (last,))
    db.execute("INSERT INTO Z_MODELCACHE VALUES (NULL)")
    hashes = {name: hashlib.sha256(name.encode()).digest() for name in ("Parcel", "Shelf")}
    ordered = [hashes[name] for name in sorted(hashes)]
    metadata = {
        "NSStoreType": "SQLite", "NSStoreModelVersionHashes": hashes, "NSStoreModelVersionHashesVersion": 3,
        "NSStoreModelVersionIdentifiers": [OLD], "NSPersistenceFrameworkVersion": 1523, "_NSAutoVacuumLevel": "2",
        "NSStoreModelVersionHashesDigest": base64.b64encode(hashlib.sha512(
            b"".join(n.encode() + hashes[n] for n in sorted(hashes))).digest()).decode(),
        "NSStoreModelVersionChecksumKey": base64.b64encode(hashlib.sha256(b"".join(ordered)).digest()).decode(),
    }
    identifier = str(uuid.UUID(int=names.getrandbits(128), version=4)).upper()
    db.execute(
        "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
        (identifier, plistlib.dumps(metadata, fmt=plistlib.FMT_BINARY)))
    if recipe.history is not None:
        history.make(db, recipe)


def _make_plain(db, path, recipe):
    del path
    accounts, payments = _accounts(recipe)
    db.executemany("INSERT INTO account VALUES (?, ?, ?)", accounts)
    db.executemany("INSERT INTO payment VALUES (?, ?, ?)", payments)
    db.execute("INSERT INTO setting VALUES (1, ?)", (recipe.behaviour,))
    db.execute("PRAGMA user_version = 1")


def _free_pages(db, recipe):
    """Adds rows that take twice as many pages as the store has, and deletes them."""
    insert, delete = {
        "coredata": ("ZPARCEL (Z_PK, Z_ENT, Z_OPT, ZSIZE, ZSHELF, ZNAME) VALUES (?, 1, 1, 0, 1, ?)", "ZPARCEL WHERE Z_PK"),
        "plain": ("account (id, owner, balance) VALUES (?, ?, 0)", "account WHERE id"),
    }[recipe.format]
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    for key in range(recipe.rows + 1, recipe.rows + 1 + pages):
        db.execute(f"INSERT INTO {insert}", (key, f"{key} " + "z" * 2 * recipe.page_size))
    db.execute(f"DELETE FROM {delete} > ?", (recipe.rows,))


def external_folder(store):
    folder, name = os.path.split(store)
    return os.path.join(folder, "." + name.rsplit(".", 1)[0] + "_SUPPORT", "_EXTERNAL_DATA")


def _leave_unfinished(path, recipe):
    """Writes as an app that dies: what is committed stays, what is not must be rolled back."""
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        return
    columns = [("ZPARCEL", "ZSIZE") if recipe.format == "coredata" else ("account", "balance")]
    if recipe.history is not None:
        columns.append(("ACHANGE", "ZENTITYPK"))
    try:
        db = sqlite3.connect(path, isolation_level=None)
        if recipe.start == "pending":
            # The rows end as they were, but only the -wal says so.
            db.execute("PRAGMA wal_autocheckpoint = 0")
            for table, column in columns * 2:
                db.execute(f"UPDATE {table} SET {column} = -{column}")
        else:
            db.execute("PRAGMA cache_size = 1")
            db.execute("BEGIN")
            for table, column in columns:
                db.execute(f"UPDATE {table} SET {column} = {column} + 1000000")
            db.execute("CREATE TABLE unfinished (value)")
            db.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) "
                "INSERT INTO unfinished SELECT randomblob(400) FROM n")
    finally:
        os._exit(0)
