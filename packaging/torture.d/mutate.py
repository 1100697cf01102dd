"""Mutations: with one protection removed on purpose the torture must find a loss. Proves that it would see one.

A mutation replaces text in the keeper's sources, or is a rule of strace. One keeper is built with all of them, on an
overlay of the repository, so that neither sources nor build folder change; a variable of its environment says which
protection is removed. A control is a mutation that must *not* be caught, because another protection holds.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import mounts
from case import HERE

ROOT = os.path.dirname(os.path.dirname(HERE))
KEEPER = os.path.join("Sources", "InstarKeeper")


@dataclass
class Edit:
    """A text that must be in a file once, and what takes its place; MUTATION stands for the question."""

    file: str
    old: str
    new: str


@dataclass
class Mutation:
    what: str
    classes: tuple
    focus: dict = field(default_factory=dict)
    edits: tuple = ()
    caught: bool = True
    cases: int = 120


LOCK, EXCHANGE, COMPACTION = "Lock/StoreLock.swift", "Cutover/Exchange.swift", "Run/Compaction.swift"
CUTOVER = "Run/Cutover.swift"
BEGIN = '      try db.runWithoutRows(usesLog ? "BEGIN IMMEDIATE" : "BEGIN EXCLUSIVE")\n'
NO_LOCK_IN_LOG = (
    Edit(LOCK, BEGIN, f"if !usesLog || !MUTATION {{\n{BEGIN}}}\n"),
    Edit(LOCK, "    if usesLog { try observer.inDatabase { try GuardedConnection.commitKeepingWriteLock($0) } }\n",
         "if usesLog, !MUTATION { try observer.inDatabase { try GuardedConnection.commitKeepingWriteLock($0) } }\n"))


def unchecked_indexes(file, call):
    """Ignores what the comparison of indexes and tables finds."""
    return Edit(file, f"let sums = {call}", f"var sums = ColumnSums()\ndo {{ sums = {call} }} catch let error as InstarError"
                " where MUTATION && error.cause.hasPrefix(\"the indexes of\") {}")


MUTATIONS = {
    "fsync": Mutation(
        "one fsync of the keeper or of SQLite is left out", ("power",), {"drop": True}, cases=200),
    "renames": Mutation(
        "the backup gets its name after the store is written, not before", ("death",),
        {"late": "commit", "external": False, "journal": "delete"}, (
            Edit("Run/MigrationRun.swift", "    try cutover.keepBackup(externalFiles: before.externalFiles)\n",
                 "if !MUTATION { try cutover.keepBackup(externalFiles: before.externalFiles) }\n"),
            Edit("Run/MigrationRun.swift", "    report.cutover = cutover.kind\n",
                 "if MUTATION { try cutover.keepBackup(externalFiles: before.externalFiles) }\n"
                 "    report.cutover = cutover.kind\n"))),
    "phase": Mutation(
        "a small store is changed in its transaction before the phase of the cutover is on disk", ("death",),
        {"late": "commit", "light": True, "small": True, "journal": "delete"}, (
            Edit(CUTOVER, "      manifest = record.manifest\n      try conversation.enter(record)\n",
                 "      manifest = record.manifest\n      if !MUTATION { try conversation.enter(record) }\n"),
            Edit(CUTOVER, "    kind = .writeBack\n    return true\n",
                 "    if MUTATION { try conversation.enter(record) }\n    kind = .writeBack\n    return true\n"))),
    "lock": Mutation(
        "nobody keeps apps from writing a store with a rollback journal while the worker works", ("writers",),
        {"journal": "delete", "apps": True, "behaviour": "slow"}, (
            Edit(LOCK, 'try db.runWithoutRows("PRAGMA locking_mode = EXCLUSIVE; COMMIT")\n      return true',
                 'try db.runWithoutRows(MUTATION ? "COMMIT" : "PRAGMA locking_mode = EXCLUSIVE; COMMIT")\n'
                 "      return true"),)),
    "data-version": Mutation(
        "apps may write a WAL store while the worker works, and nobody compares data_version before the cutover",
        ("writers",), {"journal": "wal", "apps": True, "behaviour": "slow"}, (
            *NO_LOCK_IN_LOG,
            Edit(LOCK, "try !usesLog || observer.inDatabase { try Self.dataVersion($0) } == dataVersion",
                 "try MUTATION || !usesLog || observer.inDatabase { try Self.dataVersion($0) } == dataVersion"))),
    "optimistic": Mutation(
        "apps may write a WAL store while the worker works; the comparison of data_version still protects it",
        ("writers",), {"journal": "wal", "apps": True, "behaviour": "slow"}, NO_LOCK_IN_LOG, caught=False, cases=20),
    "copy-version": Mutation(
        "a run with 'whenBusy: migrate' does not compare data_version with that of its copy", ("writers",),
        {"policy": "migrate", "journal": "delete", "apps": True, "behaviour": "slow"}, (
            Edit(LOCK, "      if let expected, expected != version {",
                 "      if let expected, expected != version, !MUTATION {"),)),
    "inode": Mutation(
        "nobody compares the file at the store's path with the one that was locked", ("writers",),
        {"swap": "replace", "journal": "delete", "external": False}, (
            Edit("Lock/StoreLock+File.swift", "  var hasPath: Bool { isFile(at: path) }",
                 "  var hasPath: Bool { MUTATION || isFile(at: path) }"),)),
    "exchange-lease": Mutation(
        "nobody reads the lease of the file that left after an exchange", ("exchange",),
        {"openers": "patient", "journal": "delete"}, (
            Edit(EXCHANGE, "var mayStay: Bool { areExchanged && store.isUndisturbed",
                 "var mayStay: Bool { areExchanged && (MUTATION || store.isUndisturbed)"),)),
    "exchange-lock": Mutation(
        "an exchange does not lock the file that leaves, or comes, against SQLite", ("exchange",),
        {"openers": "late"}, (
            Edit("Lock/LeasedFile.swift", "  func lock() -> Bool { instar_lock_database(descriptor) == 0 }",
                 "  func lock() -> Bool { MUTATION || instar_lock_database(descriptor) == 0 }"),)),
    "stale-lock": Mutation(
        "the lock of a file that is not the store any more ends, although an app has the file open", ("exchange",),
        {"openers": "stale"}, (
            Edit("Lock/StaleFile.swift", "isKept: instar_keep_lock(file.descriptor) == 0)",
                 "isKept: MUTATION || instar_keep_lock(file.descriptor) == 0)"),)),
    "stale-recovery": Mutation(
        "a recovery does not lock a file that is not the store any more, although an app has it open", ("exchange",),
        {"former": "stale"}, (
            Edit("Recovery/Recovery.swift", "    guard record.phase == .cutover, record.cutover == .exchange else { return [] }",
                 "    guard !MUTATION, record.phase == .cutover, record.cutover == .exchange else { return [] }"),)),
    "former-file": Mutation(
        "a recovery does not compare the file that left in an exchange with its manifest", ("exchange",),
        {"former": "written", "journal": "delete"}, (
            Edit("Recovery/Recovery.swift", "    guard isStoreItself(backup), let manifest = record.manifest else",
                 "    guard !MUTATION, isStoreItself(backup), let manifest = record.manifest else"),)),
    "former-inode": Mutation(
        "a recovery does not know the file that left in an exchange by its inode", ("exchange",),
        {"former": "replaced"}, (
            Edit("Recovery/Recovery.swift", "{ $0 == record.storeInode }", "{ !MUTATION && $0 == record.storeInode }"),)),
    "free-pages": Mutation(
        "free pages are not given back, and nobody reads how many are left", ("faults",),
        {"free": True, "auto_vacuum": 2, "error": "EINTR"}, (
            Edit(COMPACTION, '      try db.execute(sql: "PRAGMA incremental_vacuum")\n',
                 '      if !MUTATION { try db.execute(sql: "PRAGMA incremental_vacuum") }\n'),
            Edit(COMPACTION, "try Self.pages(of: clone)?.free ?? free",
                 "MUTATION ? 0 : (try Self.pages(of: clone)?.free ?? free)"))),
    "index-fingerprint": Mutation(
        "nobody compares the indexes of a clone with their tables", ("plugins",), {"harm": "decoy"}, (
            unchecked_indexes(
                "Verify/CloneVerification.swift",
                'try StoreCheck.requireSound(db, "the clone", summing: columns)'),
            unchecked_indexes(
                "Run/MigrationRun+Verifying.swift",
                'try StoreCheck.requireIndexes(db, "the clone", path: nil, summing: columns)'))),
    "index-before": Mutation(
        "nobody compares the indexes of a store with their tables before a run", ("stores",), {"damage": "index"}, (
            unchecked_indexes(
                "Run/BackupCheck.swift",
                'try StoreCheck.requireSound(\n'
                '      db, "the store", path: store, summing: references.columns(db, layout),\n'
                '      checksIndexes: { try !hasSameRows() })'),)),
}
# What counts as caught: a store or a write is gone, or Instar said something untrue of a store.
COUNTED = ("lost", "untrue")
VARIABLE = "TORTURE_MUTATION"
QUESTION = f"""\
import Glibc

enum Mutation {{
  static func removes(_ name: String) -> Bool {{
    getenv("{VARIABLE}").map {{ String(cString: $0) }} == name
  }}
}}
"""


def run(names, options):
    """Runs each mutation; returns whether one was not caught, or a control was."""
    failed = False
    keeper = build(options) if any(MUTATIONS[name].edits for name in names) else None
    for name in names:
        mutation = MUTATIONS[name]
        found = torture(name, mutation, options, keeper)
        caught = any(found.get(kind) for kind in COUNTED)
        failed |= caught != mutation.caught
        print(json.dumps({
            "mutation": name, "what": mutation.what, "caught": caught, "expected": mutation.caught, **found}),
            flush=True)
    return failed


def torture(name, mutation, options, keeper):
    environment = dict(os.environ)
    if mutation.edits:
        environment.update({VARIABLE: name, "TORTURE_KEEPER": keeper})
    done = subprocess.run(
        ["/usr/bin/python3", os.path.join(ROOT, "packaging", "torture"), "--json", "--until-caught",
         "--cases", str(options.cases or mutation.cases), "--focus", json.dumps(mutation.focus),
         *(["--seed", str(options.seed)] if options.seed is not None else []),
         "--plugin", options.small_plugin if mutation.focus.get("small") else options.plugin, "--build", options.build, "--jobs", str(options.jobs),
         *(word for class_name in mutation.classes for word in ("--class", class_name))],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env=environment)
    lines = done.stdout.splitlines()
    if not lines:
        sys.exit(f"packaging/torture: the torture of mutation '{name}' ended: {done.stderr[-1000:]}")
    totals = json.loads(lines[-1])
    found = {key: totals[key] for key in ("cases", "seconds", "seed", *COUNTED)}
    for line in lines[:-1]:
        problems = [text for kind, text in json.loads(line)["problems"] if kind in COUNTED]
        if problems:
            found["example"] = problems[0][:300]
            found["case"] = json.loads(line)["case"]
            break
    return found


def mutated_sources():
    """Returns the keeper's sources with every mutation in them, by their path in the repository."""
    texts = {os.path.join(KEEPER, "Mutation.swift"): QUESTION}
    conditions = {}
    for name, mutation in MUTATIONS.items():
        for edit in mutation.edits:
            conditions.setdefault((edit.file, edit.old, edit.new), []).append(f'Mutation.removes("{name}")')
    for (file, old, new), questions in conditions.items():
        path = os.path.join(KEEPER, file)
        if path not in texts:
            with open(os.path.join(ROOT, path)) as stream:
                texts[path] = stream.read()
        if texts[path].count(old) != 1:
            sys.exit(f"packaging/torture: {path} has no longer, or more than once, what a mutation changes:\n{old}")
        texts[path] = texts[path].replace(old, new.replace("MUTATION", f"({' || '.join(questions)})"))
    return texts


def build(options):
    """Builds the mutated keeper on an overlay of the repository, and returns its path."""
    texts = mutated_sources()
    keeper = os.path.join(os.path.realpath(options.work), "mutated-keeper")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            build_on_overlay(options, texts, keeper)
            status = 0
        except OSError as error:
            print(f"packaging/torture: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        sys.exit("packaging/torture: cannot build the mutated keeper")
    return keeper


def build_on_overlay(options, texts, keeper):
    mounts.leave_namespace()
    overlay = os.path.join(options.work, "overlay")
    os.makedirs(overlay, exist_ok=True)
    mounts.run("mount", "-t", "tmpfs", "tmpfs", overlay)
    for folder in ("upper", "work"):
        os.mkdir(os.path.join(overlay, folder))
    mounts.run(
        "mount", "-t", "overlay", "overlay", "-o",
        f"lowerdir={ROOT},upperdir={overlay}/upper,workdir={overlay}/work", ROOT)
    os.chdir(ROOT)
    for path, text in texts.items():
        with open(path, "w") as stream:
            stream.write(text)
    done = subprocess.run(
        ["swift", "build", "--product", "instar-keeper"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False)
    if done.returncode != 0:
        raise OSError(f"the mutated keeper does not compile:\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    # The work folder is not under the overlay, so the program outlives it.
    shutil.copy(os.path.join(ROOT, ".build", "debug", "instar-keeper"), keeper)
