"""Hostile stores: flipped bits, zeroed and swapped pages, truncated files and logs, statements and trees that never end.

A damaged store may be refused, or migrated where integrity_check finds nothing afterwards; it may never be reported as
migrated and be damaged, and never be changed by a run that says "unchanged".
"""

import os
import sqlite3

import plugins

# Text that a reader or a writer of a table evaluates, and that takes for ever.
BOMB = "instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || 'b')"
BOMBS = (
    "ALTER TABLE {0} ADD COLUMN bomb AS ({1})",
    "CREATE VIEW bomb AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "CREATE TRIGGER bomb AFTER UPDATE ON {0} BEGIN SELECT {1}; END",
    "CREATE INDEX bomb ON {0} ({1})",
    "CREATE TABLE bomb (value CHECK ({1} = 0)); PRAGMA ignore_check_constraints = 1; INSERT INTO bomb VALUES (1)",
)


def perform(case):
    wanted = case.bench.focus.get("damage")
    bomb = not wanted and case.chance.random() < 0.1
    case.make(rows=case.chance.choice((24, 120)), start="clean" if bomb or wanted else case.chance.choice(
        ("clean", "clean", "pending")))
    if bomb:
        statement = case.chance.choice((*BOMBS, None))
        case.note("bomb: " + (statement or "a tree of {0} with {1} pages").format("TABLE", "BOMB"))
        (plant if statement else plant_tree)(case, statement)
    else:
        if wanted or case.recipe.start == "clean" and case.chance.random() < 0.1:
            damage_index(case)
        for _ in range(0 if wanted else case.chance.choice((1, 1, 1, 2, 5))):
            damage(case)
    before, bytes_before = {} if bomb else case.read_copy(), contents(case.store)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit, more=("--stage-time-limit", "5s"))
    case.check_hang(answer, "the command")
    case.await_end()
    report = answer.report or {}
    error = report.get("error") or {}
    if error.get("code") == "I315":
        case.problem("crashes", f"the keeper died of a store: {error.get('cause')}")
    if bomb:
        return
    after = case.read_copy()
    if report.get("result") == "migrated":
        if "error" in after and after["error"] == before.get("error"):
            pass  # as below
        elif "error" in after or after["integrity"] != "ok":
            case.problem("untrue", f"a store is 'migrated', and damaged: {after.get('error') or after['integrity']}")
        backup = case.read_copy(report.get("backup") or "")
        if "error" in backup and backup["error"] == before.get("error"):
            pass  # damage that Instar reads past, kept as it was
        elif "error" in backup or backup["integrity"] != "ok":
            case.problem("lost", f"the backup is damaged: {backup.get('error') or backup['integrity']}")
        elif "rows" in before and backup["rows"] != before["rows"]:
            case.problem("lost", "the backup holds other rows than the store did")
    elif (error.get("state") or "").startswith("unchanged"):
        if contents(case.store) != bytes_before and after != before:
            case.problem("untrue", f"'unchanged', but a reader finds something else: {differences(before, after)}")
    if report.get("result") not in ("migrated", "current"):
        inside = os.path.join(case.data, ".instar")
        left = os.listdir(inside) if os.path.isdir(inside) else []
        if left and "backup kept" not in (error.get("state") or ""):
            case.problem("leftovers", ".instar: " + ", ".join(left))
    phases = os.path.join(case.state, "phases")
    if os.path.isdir(phases) and os.listdir(phases):
        recovery = case.programs.recover(case.store, case.state, case.bench.limit)
        case.check_hang(recovery, "the recovery")
        if os.listdir(phases):
            case.problem("leftovers", "state/phases: " + ", ".join(os.listdir(phases)))


def contents(path):
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def differences(before, after):
    return ", ".join(
        f"{key}: {str(before.get(key))[:80]} -> {str(after.get(key))[:80]}"
        for key in sorted(set(before) | set(after)) if before.get(key) != after.get(key))


def plant(case, statement):
    table = "ZPARCEL" if case.recipe.format == "coredata" else "account"
    db = sqlite3.connect(case.store, isolation_level=None)
    # The text goes in unevaluated where SQLite would evaluate it at once.
    if statement.startswith("CREATE INDEX"):
        db.execute(f"CREATE INDEX bomb ON {table} (1 + 1)")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'bomb'", (statement.format(table, BOMB),))
    else:
        db.executescript(statement.format(table, BOMB))
    db.close()


def plant_tree(case, _):
    """Has the few pages of a table's tree name the same leaf some hundred million times."""
    db = sqlite3.connect(case.store)
    table = "ZPARCEL" if case.recipe.format == "coredata" else "payment"
    root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    db.close()
    size = case.recipe.page_size
    data = bytearray(contents(case.store))
    own = bytes(data[(root - 1) * size:root * size])
    if own[0] == TABLE_LEAF:
        data += own
        child = len(data) // size
    else:
        child = int.from_bytes(own[8:12], "big")
    cells, reached = (size - 12) // (CELL_SIZE + 2), 1
    while reached < 300_000_000:
        reached *= cells
        page = interior_page(size, cells, child)
        if reached < 300_000_000:
            data += page
            child = len(data) // size
    data[(root - 1) * size:root * size] = page
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    with open(case.store, "r+b") as stream:
        stream.write(data)


# Of the file format: the kind of a page, and a cell with a page's number and a key of two bytes.
TABLE_LEAF, TABLE_INTERIOR, CELL_SIZE = 13, 5, 6


def interior_page(size, cells, child):
    page = bytearray(size)
    start = size - cells * CELL_SIZE
    page[0] = TABLE_INTERIOR
    page[3:5], page[5:7], page[8:12] = cells.to_bytes(2, "big"), start.to_bytes(2, "big"), child.to_bytes(4, "big")
    for number in range(cells):
        offset = size - (number + 1) * CELL_SIZE
        page[12 + 2 * number:14 + 2 * number] = offset.to_bytes(2, "big")
        page[offset:offset + CELL_SIZE] = child.to_bytes(4, "big") + bytes((0x81 + (number >> 7), number & 0x7F))
    return bytes(page)


def damage_index(case):
    """Leaves an index that is whole by itself and does not match its table: a row is missing, or all are of another."""
    table, column, index = ("ZPARCEL", "ZSIZE", "ZPARCEL_ZSHELF_INDEX") if case.recipe.format == "coredata" else (
        "payment", "amount", "payment_account")
    if case.recipe.history and case.chance.random() < 0.5:
        table, column, index = "ACHANGE", "ZENTITYPK", "ACHANGE_ZTRANSACTIONID_INDEX"
    db = sqlite3.connect(case.store, isolation_level=None)
    kind = case.chance.choice(("stale", "missing", "kept"))
    if kind == "stale":
        db.executescript(plugins.STALE_INDEX.format(table=table, column=column, index=index))
    else:
        row = db.execute("SELECT * FROM sqlite_master WHERE name = ?", (index,)).fetchone()
        db.execute("PRAGMA writable_schema = 1")
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
        db.execute("PRAGMA writable_schema = RESET")
        # The index does not hear of it.
        if kind == "missing":
            db.execute(f"UPDATE {table} SET rowid = rowid + 1000 WHERE rowid = (SELECT max(rowid) FROM {table})")
        else:
            db.execute(f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
        db.execute("PRAGMA writable_schema = 1")
        db.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
        db.execute("PRAGMA writable_schema = RESET")
    db.close()
    case.note(f"an index of {table} is {kind}")


def damage(case):
    """Damages the store, or its log."""
    chance = case.chance
    paths = [case.store] * 4 + [path for path in (case.store + "-wal", case.store + "-journal") if os.path.exists(path)]
    path = chance.choice(paths)
    data = bytearray(contents(path) or b"")
    if not data:
        return
    page = case.recipe.page_size
    pages = max(1, len(data) // page)
    kind = chance.choice(("bit", "bit", "bit", "byte", "header", "zero", "swap", "truncate", "shorten", "grow", "cell"))
    if kind == "bit":
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "byte":
        data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == "header":
        data[chance.randrange(min(100, len(data)))] = chance.randrange(256)
    elif kind == "zero":
        start = chance.randrange(pages) * page
        data[start:start + page] = bytes(len(data[start:start + page]))
    elif kind == "swap":
        one, other = chance.randrange(pages) * page, chance.randrange(pages) * page
        data[one:one + page], data[other:other + page] = data[other:other + page], data[one:one + page]
    elif kind == "truncate":
        del data[chance.randrange(len(data)):]
    elif kind == "shorten":
        del data[chance.randrange(pages) * page:]
    elif kind == "grow":
        data += chance.randbytes(chance.choice((1, 100, page, 3 * page)))
    elif kind == "cell":
        # The start of a page: its kind, its cells and where they are.
        start = chance.randrange(pages) * page
        data[min(start + chance.randrange(40), len(data) - 1)] = chance.randrange(256)
    with open(path, "r+b") as stream:
        stream.write(data)
        stream.truncate()
    case.note(f"{kind} in {os.path.basename(path)}")
