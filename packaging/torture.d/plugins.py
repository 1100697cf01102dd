"""Hostile plugins: crash, hang, flood, forge messages, damage the clone, leave threads, files and SQL behind.

Whatever a plugin does, the store is at its old version, or at its new one with exactly the rows that the plan writes.
"""

# What `Torture.swift` does in willMigrate, or in didMigrate after "late".
BEHAVIOURS = (
    "throw trap abort exit quick-exit hang spin flood memory threads descriptors garbage nothing endless-line "
    "forged-end forged-stage forged-failure forged-text writing-threads late-write scribble truncate sparse "
    "sparse-file large-file many-files deep-folders remove-clone replace-clone folder-for-clone link-for-clone "
    "hard-link links pipe journal-left log-left mode folder-mode signals write-store scribble-external").split()
# Heavy ones are drawn less often.
HEAVY = frozenset("hang spin flood memory threads endless-line large-file many-files".split())

# What writes over bytes of the clone. A write inside a value is the plugin's own wrong value.
SCRIBBLING = frozenset("writing-threads late-write scribble".split())

# Gives an index the pages of one on another column: nothing but a comparison with its table shows it.
STALE_INDEX = (
    "CREATE INDEX decoy ON {table} ({column}); PRAGMA writable_schema = 1; "
    "UPDATE sqlite_master SET rootpage = (SELECT sum(rootpage) FROM sqlite_master WHERE name IN ('decoy', '{index}')) "
    "- rootpage WHERE name IN ('decoy', '{index}'); PRAGMA writable_schema = RESET; DROP INDEX decoy")

# What SQL on the engine's own connection leaves in the clone. Each is harm that no schema describes.
HARM = {
    "coredata": (
        "CREATE TRIGGER t AFTER INSERT ON ZPARCEL BEGIN DELETE FROM ZSHELF; END",
        "CREATE VIEW v AS SELECT * FROM ZPARCEL",
        "CREATE TABLE extra (value)",
        "CREATE INDEX extra ON ZPARCEL (ZNAME)",
        "CREATE UNIQUE INDEX extra ON ZPARCEL (ZSIZE)",
        "UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR CHECK (0)') "
        "WHERE name = 'ZPARCEL'",
        "UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR COLLATE nowhere') "
        "WHERE name = 'ZPARCEL'",
        "UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR DEFAULT (zeroblob(900000000))') "
        "WHERE name = 'ZPARCEL'",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'ZSHELF') "
        "WHERE name = 'ZPARCEL_ZSHELF_INDEX'",
        STALE_INDEX.format(table="ZPARCEL", column="ZSIZE", index="ZPARCEL_ZSHELF_INDEX"),
        "DELETE FROM sqlite_master WHERE name = 'ZPARCEL_ZSHELF_INDEX'",
        "DELETE FROM ZPARCEL WHERE Z_PK % 2",
        "UPDATE ZPARCEL SET ZSHELF = 77",
        "UPDATE ZPARCEL SET ZCONTENT = x'02' || CAST('3F2504E0-4F89-11D3-9A0C-0305E82C3301' AS BLOB) || x'00'",
        "UPDATE Z_PRIMARYKEY SET Z_MAX = 0",
        "UPDATE Z_METADATA SET Z_PLIST = x'00'",
        "DROP TABLE ZPARCEL",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = WAL"),
    "plain": (
        "CREATE TRIGGER t AFTER INSERT ON account BEGIN DELETE FROM payment; END",
        "CREATE VIEW v AS SELECT * FROM account",
        "CREATE TABLE extra (value)",
        "CREATE UNIQUE INDEX extra ON payment (amount)",
        "UPDATE sqlite_master SET sql = replace(sql, 'owner TEXT NOT NULL', "
        "'owner TEXT NOT NULL ON CONFLICT REPLACE CHECK (0)') WHERE name = 'account'",
        "UPDATE sqlite_master SET sql = replace(sql, 'SET NULL', 'CASCADE') WHERE name = 'payment'",
        "UPDATE sqlite_master SET sql = replace(sql, 'amount INTEGER NOT NULL', "
        "'amount INTEGER NOT NULL CHECK (instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || ''b'') = 0)') "
        "WHERE name = 'payment'",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'account_owner') "
        "WHERE name = 'payment_account'",
        STALE_INDEX.format(table="payment", column="amount", index="payment_account"),
        "PRAGMA writable_schema = 1; DELETE FROM sqlite_master WHERE name = 'account_owner'",
        "DELETE FROM account WHERE id % 2",
        "PRAGMA foreign_keys = OFF; UPDATE payment SET account_id = 4711",
        "DROP TABLE payment",
        "PRAGMA foreign_keys = OFF; DELETE FROM account",
        "PRAGMA user_version = 2"),
}


def perform(case):
    wanted = case.bench.focus.get("harm", "")
    if wanted or case.chance.random() < 0.4:
        store_format = case.chance.choice(sorted(HARM))
        behaviour = "sql " + case.chance.choice([harm for harm in HARM[store_format] if wanted in harm])
    else:
        store_format = case.chance.choice(sorted(HARM))
        behaviour = case.chance.choice(BEHAVIOURS)
        if behaviour in HEAVY and case.chance.random() < 0.6:
            behaviour = case.chance.choice(BEHAVIOURS)
    if case.chance.random() < 0.5:
        behaviour = "late " + behaviour
    case.make(rows=24, start="clean", behaviour=behaviour, external=False, format=store_format)
    case.note(behaviour)
    case.values_may_differ = behaviour.split()[-1] in SCRIBBLING
    answer = case.programs.migrate(case.store, case.state, case.bench.limit, more=("--stage-time-limit", "2s"))
    if "sql " in behaviour:
        require_harm(case, answer)
    if "DELETE FROM ZPARCEL" in behaviour:
        remove_odd(case.new.rows["parcel"])
    elif "DELETE FROM account WHERE" in behaviour:
        remove_odd(case.new.rows["account"])
        for payment in case.new.rows["payment"]:
            # ON DELETE SET NULL
            payment[2] = None if payment[2] % 2 else payment[2]
    case.conclude(answer, finish=False)


def require_harm(case, answer):
    """A statement that the engine refused would prove nothing."""
    report = answer.report or {}
    said = [line for line in answer.messages.splitlines() if "sql: " in line]
    if not said and (report.get("error") or {}).get("code") == "I304":
        return case.note("the time limit ended the worker before")
    if not said or not all(line.endswith("sql: done") for line in said):
        raise AssertionError(f"the plugin did not do its harm: {said or answer.messages[-600:]}")
    return case.note(f"it is {report.get('result')}: {(report.get('error') or {}).get('cause')}")


def remove_odd(rows):
    """A plan may remove rows: nobody else can know which rows are right."""
    rows[:] = [row for row in rows if row[0] % 2 == 0]
