"""judge.py STORE: reads a store through a fresh connection of SQLite and prints what it holds, as JSON.

It runs in a process of its own and knows nothing of Instar.
"""

import hashlib
import json
import os
import plistlib
import sqlite3
import sys


def read(path):
    db = sqlite3.connect(f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=rw",
                         uri=True, timeout=10, isolation_level=None)
    db.text_factory = lambda text: text.decode(errors="backslashreplace")
    found = {"integrity": "; ".join(row[0] for row in db.execute("PRAGMA integrity_check(5)"))}
    found["foreign"] = len(db.execute("PRAGMA foreign_key_check").fetchall())
    found["free"] = db.execute("PRAGMA freelist_count").fetchone()[0]
    found["journal"] = db.execute("PRAGMA journal_mode").fetchone()[0]
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found["schema"] = sorted(
        " ".join((row[0] or "").split()) for row in db.execute("SELECT sql FROM sqlite_master"))
    reader = read_coredata if "Z_METADATA" in tables else read_plain
    found.update(reader(db, path))
    db.close()
    return found


def columns(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def read_coredata(db, path):
    plist = plistlib.loads(db.execute("SELECT Z_PLIST FROM Z_METADATA").fetchone()[0])
    label = "ZLABEL" if "ZLABEL" in columns(db, "ZPARCEL") else "NULL"
    folder, name = os.path.split(path)
    external = os.path.join(folder, "." + name.rsplit(".", 1)[0] + "_SUPPORT", "_EXTERNAL_DATA")
    files = []

    def value(stored):
        if stored is None:
            return None
        if isinstance(stored, str):
            return "text"
        if stored[:1] == b"\x01":
            content = stored[1:]
        else:
            # A plugin may have written over the name.
            file = stored[1:].rstrip(b"\x00").decode(errors="backslashreplace")
            files.append(file)
            try:
                with open(os.path.join(external, file), "rb") as stream:
                    content = stream.read()
            except OSError as error:
                return f"no file: {error.strerror}"
            except ValueError:
                return "no file: a null byte in its name"
        return hashlib.sha256(content).hexdigest()[:16]

    parcels = [
        [key, name, size, text, value(content), shelf]
        for key, name, size, text, content, shelf in db.execute(
            f"SELECT Z_PK, ZNAME, ZSIZE, {label}, ZCONTENT, ZSHELF FROM ZPARCEL ORDER BY Z_PK")]
    history = read_history(db)
    for name, table in {"Parcel": "ZPARCEL", **(HISTORY if history else {})}.items():
        behind = db.execute(
            "SELECT ifnull((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = ?), 0) "
            f"< ifnull((SELECT max(Z_PK) FROM {table}), 0)", (name,))
        if behind.fetchone()[0]:
            return {"error": f"Z_PRIMARYKEY would hand out a key of {table} again"}
    return {
        "version": (plist.get("NSStoreModelVersionIdentifiers") or [""])[0],
        "files": sorted(files),
        "rows": {
            "shelf": [list(r) for r in db.execute("SELECT Z_PK, ZBEHAVIOUR FROM ZSHELF ORDER BY 1")],
            "parcel": parcels, **history}}


# The tables of the history, by their names in Z_PRIMARYKEY.
HISTORY = {"CHANGE": "ACHANGE", "TRANSACTION": "ATRANSACTION", "TRANSACTIONSTRING": "ATRANSACTIONSTRING"}


def read_history(db):
    """The transactions with their texts, and their changes; nothing where the store keeps no history."""
    if not columns(db, "ACHANGE"):
        return {}
    # A number that names no text stays a number.
    texts = ", ".join(
        f"ifnull((SELECT ZNAME FROM ATRANSACTIONSTRING AS s WHERE s.Z_PK = t.Z{label}TS), t.Z{label}TS)"
        for label in ("AUTHOR", "BUNDLEID", "PROCESSID"))
    return {
        "transaction": [list(r) for r in db.execute(
            f"SELECT Z_PK, Z_ENT, ZTIMESTAMP, {texts} FROM ATRANSACTION AS t ORDER BY 1")],
        "change": [list(r) for r in db.execute(
            "SELECT Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, "
            "CASE WHEN ZCOLUMNS IS NOT NULL THEN lower(hex(ZCOLUMNS)) END FROM ACHANGE ORDER BY 1")]}


def read_plain(db, path):
    del path
    names = columns(db, "account")
    balance = "cents" if "cents" in names else "balance"
    label = "label" if "label" in names else "NULL"
    return {
        "version": f"{db.execute('PRAGMA user_version').fetchone()[0]}.0.0",
        "files": [],
        "rows": {
            "setting": [list(r) for r in db.execute("SELECT id, behaviour FROM setting ORDER BY 1")],
            "account": [
                list(r) for r in db.execute(f"SELECT id, owner, {balance}, {label} FROM account ORDER BY 1")],
            "payment": [list(r) for r in db.execute("SELECT id, amount, account_id FROM payment ORDER BY 1")]}}


def answer(path):
    """What is in the store; {"error": "..."} where it cannot be read."""
    try:
        return read(path)
    except Exception as problem:  # whatever it is, it is the finding
        return {"error": f"{type(problem).__name__}: {problem}"}


if __name__ == "__main__":
    json.dump(answer(sys.argv[1]), sys.stdout, indent=1)
