"""app.py MODE STORE LOG: an app that uses a store while Instar migrates it, until LOG.stop exists.

It runs in a process of its own, on Python's sqlite3. A writer appends "try NAME SIZE" to LOG before each transaction
and "ack NAME" after SQLite has acknowledged it. What an app must never see (damage) it appends as "bad TEXT".

Modes: writer (one connection), opener (a connection for each write), fleeting (such a connection without a journal
file: safe as long as nobody kills it), patient (fleeting, but once open(2) held it up it stays until it has written),
late (opens the old file by a descriptor, after another file has taken the store's path), former and comer (open the
store until open(2) ends with a file that is not the store, and then use that file: the one that left, or the one that
came and was taken back), reader, checkpointer, vacuum, holder (keeps a read transaction), locker (keeps the write lock
now and then).
"""

import os
import random
import sqlite3
import stat
import sys
import time

# An open(2) that takes longer was held up by a lease.
HELD_UP = 0.04
BAD = ("malformed", "not a database", "no such table", "short read", "misuse")


class App:
    def __init__(self, mode, store, log):
        self.mode, self.store, self.log = mode, store, log
        self.stop = log + ".stop"
        self.stream = open(log, "a", buffering=1)
        self.chance = random.Random(os.path.basename(log))
        self.db = None
        self.number = 0
        self.was_held_up = False
        self.inode = None
        self.is_stale = False
        self.known = None
        # Says nothing to the kernel's leases.
        self.path_of_file = os.open(store, os.O_PATH) if mode == "late" else None

    def say(self, text):
        self.stream.write(text + "\n")

    def open(self, path=None):
        uri = "file:" + (path or self.store) + "?mode=rw"
        began = time.monotonic()
        # A patient app is to wait in open(2), not for a lock: the keeper takes no lease of a file that is open.
        timeout = 0 if self.mode == "patient" else 0.05
        self.db = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
        self.was_held_up = time.monotonic() - began > HELD_UP
        if self.mode in ("former", "comer"):
            self.inode = self.inode_of_database()

    def close(self):
        self.abandon()
        self.db.close()
        self.db = None

    def run(self):
        step = getattr(self, self.mode)
        self.say("ready")
        while not os.path.exists(self.stop):
            try:
                if self.db is None and self.mode not in ("late", "comer"):
                    self.open()
                step()
            except sqlite3.Error as error:
                if any(word in str(error) for word in BAD):
                    self.say(f"bad {self.mode}: {error}")
                self.abandon()
            time.sleep(self.chance.random() * 0.004)
        if self.db is not None:
            self.db.close()

    def abandon(self):
        try:
            if self.db is not None and self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except sqlite3.Error:
            pass

    def writer(self):
        self.number += 1
        name = f"app {os.path.basename(self.log)} {self.number}"
        self.db.execute("BEGIN IMMEDIATE")
        # Named only under the lock: what is tried elsewhere cannot have been written.
        self.say(f"try {self.number} {name}")
        tables = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master")}
        if "ZPARCEL" in tables:
            self.db.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_ENT = 1")
            self.db.execute(
                "INSERT INTO ZPARCEL (Z_PK, Z_ENT, Z_OPT, ZSIZE, ZSHELF, ZNAME) "
                "SELECT Z_MAX, 1, 1, ?, 1, ? FROM Z_PRIMARYKEY WHERE Z_ENT = 1", (self.number, name))
            if "ACHANGE" in tables:
                self.note_insertion()
        else:
            columns = [row[1] for row in self.db.execute("PRAGMA table_info(account)")]
            balance = "cents" if "cents" in columns else "balance"
            self.db.execute(f"INSERT INTO account (owner, {balance}) VALUES (?, ?)", (name, self.number))
        self.db.execute("COMMIT")
        self.say(f"ack {name}")

    def note_insertion(self):
        """Writes the history of the insertion, as Core Data does with each save."""
        text = self.db.execute("SELECT Z_PK FROM ATRANSACTIONSTRING WHERE ZNAME = 'app'").fetchone()
        if text is None:
            text = self.next_key(16003, "TRANSACTIONSTRING")
            self.db.execute("INSERT INTO ATRANSACTIONSTRING VALUES (?, 16003, NULL, 'app')", text)
        change, transaction = self.next_key(16001, "CHANGE"), self.next_key(16002, "TRANSACTION")
        self.db.execute(
            "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZBUNDLEIDTS, ZPROCESSIDTS, ZTIMESTAMP) VALUES (?, 16002, ?, ?, ?)",
            (*transaction, *text, *text, time.time() - 978307200))
        self.db.execute(
            "INSERT INTO ACHANGE SELECT ?, 16001, NULL, 0, 1, Z_MAX, ?, NULL FROM Z_PRIMARYKEY WHERE Z_ENT = 1",
            (*change, *transaction))

    def next_key(self, number, name):
        self.db.execute(
            "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, 1) ON CONFLICT (Z_ENT) DO UPDATE SET Z_MAX = Z_MAX + 1",
            (number, name))
        return self.db.execute("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?", (number,)).fetchone()

    def opener(self):
        try:
            self.writer()
        finally:
            self.close()

    def fleeting(self):
        self.db.execute("PRAGMA journal_mode = MEMORY")
        self.opener()

    def patient(self):
        """Without a journal file SQLite does not notice that the path names another file now."""
        try:
            if self.journal() == "delete":
                self.db.execute("PRAGMA journal_mode = MEMORY")
            self.writer()
        except sqlite3.Error:
            if not self.was_held_up:
                self.close()
                time.sleep(0.03)
            raise
        self.close()
        time.sleep(0.03)

    def late(self):
        """Like an app that resolved the path before an exchange, and was held up before it opened the file."""
        if os.stat(self.store).st_ino == os.fstat(self.path_of_file).st_ino:
            return
        self.path_of_file, kept = os.open(self.store, os.O_PATH), self.path_of_file
        time.sleep(self.chance.random() * 0.7)
        try:
            self.open(f"/proc/self/fd/{kept}")
            end = time.monotonic() + 2
            # One that was not held up comes after the end: the file is a backup, or nothing, and not the store.
            while self.was_held_up and time.monotonic() < end and self.journal() == "delete":
                self.db.execute("PRAGMA journal_mode = MEMORY")
                try:
                    self.writer()
                    break
                except sqlite3.OperationalError:
                    self.abandon()
        finally:
            if self.db is not None:
                self.close()
            os.close(kept)

    def former(self):
        if self.has_stale_file():
            return self.use_stale_file()
        self.close()
        return time.sleep(0.03)

    def comer(self):
        if self.db is None:
            # Only stat(2) until another file has the path: whoever opens the store before waits for the one that leaves.
            found = os.stat(self.store).st_ino
            self.known, before = found, self.known
            if before in (None, found):
                return
            self.open()
        if self.has_stale_file():
            self.use_stale_file()
        else:
            self.close()

    def use_stale_file(self):
        """With the settings of an ordinary app: its SQLite looks for a journal and a log at the store's path."""
        if not self.is_stale:
            self.is_stale = True
            self.say("stale")
        time.sleep(0.01)
        self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self.mode == "comer":
            # An app that can read may delete the journal of another one. Nobody has killed the keeper.
            self.say("bad comer: SQLite let it read a file that is not the store")
        self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self.db.execute("BEGIN IMMEDIATE")
        # Under the lock: until then the file may have become the store.
        if self.has_stale_file():
            self.db.execute("CREATE TABLE stale (row)")
            self.db.execute("COMMIT")
            self.say(f"bad {self.mode}: SQLite acknowledged a write to a file that is not the store")
        else:
            self.db.execute("ROLLBACK")

    def inode_of_database(self):
        """By stat(2): to open and close the file once more would end SQLite's locks."""
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            try:
                status = os.fstat(descriptor)
            except OSError:
                continue  # That of the list.
            if stat.S_ISREG(status.st_mode) and descriptor != self.stream.fileno():
                return status.st_ino
        raise AssertionError("the database is not open")

    def has_stale_file(self):
        """Whether the file that was opened has not, or no longer, the store's path."""
        try:
            return self.inode != os.stat(self.store).st_ino
        except FileNotFoundError:
            return False

    def journal(self):
        return self.db.execute("PRAGMA journal_mode").fetchone()[0]

    def reader(self):
        tables = [row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.db.execute("BEGIN")
        for table in tables:
            try:
                self.db.execute(f"SELECT count(*), max(rowid) FROM {table}").fetchone()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
        verdict = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            self.say(f"bad reader: {verdict}")
        self.db.execute("COMMIT")

    def checkpointer(self):
        kind = self.chance.choice(("PASSIVE", "FULL", "RESTART", "TRUNCATE"))
        self.db.execute(f"PRAGMA wal_checkpoint({kind})").fetchone()

    def vacuum(self):
        self.db.execute("VACUUM")
        time.sleep(0.02)

    def holder(self):
        self.db.execute("BEGIN")
        self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        time.sleep(self.chance.random() * 0.2)
        self.db.execute("COMMIT")
        time.sleep(0.02)

    def locker(self):
        self.db.execute("BEGIN IMMEDIATE")
        time.sleep(self.chance.random() * 0.1)
        self.db.execute("ROLLBACK")
        time.sleep(0.05)


if __name__ == "__main__":
    App(*sys.argv[1:4]).run()
