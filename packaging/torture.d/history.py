"""The persistent history of some of Core Data's stores: what the app's saves left, and what must be there afterwards.

Tables, numbers and order are those of stores that Apple's frameworks wrote: a transaction for each save, the texts of
transactions once in a table of their own, no Z_OPT, and the highest keys in Z_PRIMARYKEY once something is written.
"""

import random
from dataclasses import dataclass

_ROW = "( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
_LABELS = ("AUTHOR", "BUNDLEID", "CONTEXTNAME", "PROCESSID")
SCHEMA = (
    f"CREATE TABLE ACHANGE {_ROW}ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, "
    "ZCOLUMNS BLOB )",
    f"CREATE TABLE ATRANSACTION {_ROW}" + "".join(f"Z{label}TS INTEGER, " for label in _LABELS) + "ZTIMESTAMP FLOAT, "
    + "".join(f"Z{label} VARCHAR, " for label in _LABELS) + "ZQUERYGEN BLOB )",
    f"CREATE TABLE ATRANSACTIONSTRING {_ROW}ZNAME VARCHAR )",
    "CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)",
    *(f"CREATE INDEX ATRANSACTION_Z{label}TS_INDEX ON ATRANSACTION (Z{label}TS)" for label in _LABELS),
    "CREATE INDEX Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION (ZAUTHOR COLLATE BINARY ASC)",
    "CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION (ZTIMESTAMP COLLATE BINARY ASC)",
    "CREATE UNIQUE INDEX Z_TRANSACTIONSTRING_UNIQUE_NAME ON ATRANSACTIONSTRING (ZNAME COLLATE BINARY ASC)")
# As `judge.py` names them.
TABLES = ("transaction", "change")
CHANGE, TRANSACTION, STRING = 16001, 16002, 16003
INSERT, UPDATE, DELETE = 0, 1, 2
PARCEL, SHELF = 1, 2
# How many changes a history has; those of a large store have many pages. A new store of SwiftData has none.
LENGTHS, LARGE_LENGTHS = (0, 40, 40, 400), (0, 400, 4000)
# The parcels that the app deleted. Their keys are above those of all others.
DELETED = 5
_BUNDLE, _PROCESS, _AUTHOR = "com.example.Parcels", "Parcels", "import"


@dataclass
class History:
    """What the saves of an app wrote."""

    # (key, kind, entity, key of the row, transaction, positions of the written properties) of each change
    changes: list
    # (key, time, author or None) of each transaction
    transactions: list
    # The key of the last transaction that the app deleted, as apps do with those that they have processed.
    purged: int


def of(recipe):
    """The history of a recipe's store: one save inserted all rows, and later ones changed or deleted some."""
    chance = random.Random(recipe.seed + 2)
    last = recipe.rows + DELETED
    first = [(INSERT, PARCEL, key, None) for key in range(1, last + 1)] + [(INSERT, SHELF, key, None) for key in (1, 2)]
    chance.shuffle(first)
    deletions = [(DELETE, PARCEL, key, None) for key in range(recipe.rows + 1, last + 1)]
    saves = [first, deletions]
    while sum(len(save) for save in saves) < recipe.history:
        saves.append([_update(recipe, chance) for _ in range(chance.randrange(1, 7))])
    if recipe.history == 0:
        saves = []
    purged = chance.randrange(1, len(saves)) if len(saves) > 2 and chance.random() < 0.3 else 0
    history = History([], [], purged)
    for number, save in enumerate(saves, 1):
        author = _AUTHOR if chance.random() < 0.2 else None
        history.transactions.append((number, 737057647.288022 + 61.5 * number, author))
        for *change, columns in save:
            history.changes.append((len(history.changes) + 1, *change, number, columns))
    return history


def _update(recipe, chance):
    """A bit for each property, by their names: the content, name, shelf and size of a parcel, or those of a shelf."""
    if chance.random() < 0.2:
        return UPDATE, SHELF, chance.choice((1, 2)), b"\x80"
    return UPDATE, PARCEL, chance.randrange(1, recipe.rows + 1), bytes([chance.randrange(1, 16) << 4])


def make(db, recipe):
    """Writes the tables of the history, after all others as Core Data does, and their rows."""
    for statement in SCHEMA:
        db.execute(statement)
    history = of(recipe)
    if not history.changes:
        return
    strings = {text: number for number, text in enumerate((_BUNDLE, _PROCESS, _AUTHOR), 1)}
    db.executemany(
        f"INSERT INTO ATRANSACTIONSTRING VALUES (?, {STRING}, NULL, ?)",
        [(number, text) for text, number in strings.items()])
    db.executemany(
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZBUNDLEIDTS, ZPROCESSIDTS, ZTIMESTAMP) "
        f"VALUES (?, {TRANSACTION}, ?, {strings[_BUNDLE]}, {strings[_PROCESS]}, ?)",
        [(key, strings.get(author), time) for key, time, author in history.transactions])
    db.executemany(f"INSERT INTO ACHANGE VALUES (?, {CHANGE}, NULL, ?, ?, ?, ?, ?)", history.changes)
    db.execute("DELETE FROM ACHANGE WHERE ZTRANSACTIONID <= ?", (history.purged,))
    db.execute("DELETE FROM ATRANSACTION WHERE Z_PK <= ?", (history.purged,))
    # The keys go on. Core Data counts more texts than it keeps.
    db.executemany("INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, ?)", (
        (CHANGE, "CHANGE", history.changes[-1][0]), (TRANSACTION, "TRANSACTION", history.transactions[-1][0]),
        (STRING, "TRANSACTIONSTRING", 9 * len(strings))))


def contents(recipe):
    """The rows of the history at the old version and at the new one, in the form in which `judge.py` reports them."""
    history = of(recipe)
    transactions = [
        [key, TRANSACTION, time, author, _BUNDLE, _PROCESS] for key, time, author in history.transactions
        if key > history.purged]
    old, new = [], []
    for key, *row, columns in history.changes:
        if row[3] <= history.purged:
            continue
        row = [key, CHANGE, *row]
        old.append([*row, columns.hex() if columns else None])
        # A parcel has other properties now, so the old positions name none of them.
        new.append([*row, columns.hex() if columns and row[3] != PARCEL else None])
    return tuple({"transaction": transactions, "change": changes} for changes in (old, new))


def difference(found, expected, keys_only):
    """Returns how a history differs from the expected one; None where it does not.

    Behind what the recipe says are the saves of apps, which insert parcels, and those of stages with code, which write
    each parcel once. `keys_only`: the values of rows may differ.
    """
    later = {}
    for table in TABLES:
        wanted = expected[table]
        last = wanted[-1][0] if wanted else 0
        earlier = [row for row in found[table] if row[0] <= last]
        later[table] = [row for row in found[table] if row[0] > last]
        if keys_only:
            earlier, wanted = [row[:1] for row in earlier], [row[:1] for row in wanted]
        if earlier != wanted:
            wrong = [pair for pair in zip(earlier, wanted) if pair[0] != pair[1]][:1]
            return f"{len(earlier)} earlier rows of {table}, expected {len(wanted)}; first difference: {str(wrong)[:300]}"
    return None if keys_only else _difference_of_saves(found["parcel"], expected["parcel"], later)


def _difference_of_saves(parcels, expected, later):
    own = {row[0] for row in expected}
    # Stages with code give each parcel a label.
    labelled = {key: (size, content) for key, _, size, label, content, _ in parcels if label is not None}
    kinds = {
        "insertions": (INSERT, [row[0] for row in parcels if row[0] not in own]), "updates": (UPDATE, sorted(labelled))}
    for name, (kind, keys) in kinds.items():
        noted = sorted(row[4] for row in later["change"] if row[2:4] == [kind, PARCEL])
        if noted != keys:
            return f"the history has later {name} of the parcels {noted}, expected {keys}"[:300]
    for key, number, kind, entity, row, transaction, columns in later["change"]:
        wanted = {None}
        if kind == UPDATE and entity == PARCEL:
            size, content = labelled[row]
            # Of content, label, name, shelf and size: the second and the last, and the first where it was reversed.
            wanted = {"48", "c8"} if size % 4 == 0 and content is not None else {"48"}
        if number != CHANGE or (kind, entity) not in ((INSERT, PARCEL), (UPDATE, PARCEL)) or columns not in wanted:
            return f"the history has the change {[key, number, kind, entity, row, transaction, columns]}"
    transactions = {row[0]: row for row in later["transaction"]}
    if {row[5] for row in later["change"]} != set(transactions):
        return f"the later changes do not have the later transactions: {str(later)[:300]}"
    if not all(row[1] == TRANSACTION and all(isinstance(text, str) for text in row[4:]) for row in transactions.values()):
        return f"a transaction lacks its texts: {str(later['transaction'])[:300]}"
    return None
