"""Exchange: apps that open a store in the moment in which it is exchanged for its clone; death, faults and the like then.

strace holds the keeper up before and after the exchange, or before it gives the lease of the file that left back. So
apps wait in open(2) for that file, for the one that comes, or for both. A fleeting app has no journal file, so SQLite
itself does not protect it from writing to a file that has left; a patient one writes when all locks are gone. A stale
one (former, comer) has an ordinary journal or log, and stays on a file that is not the store, while others write the
store.
"""

import os
import shutil

import daemon
import death
import disk
import faults
import power
import writers
from case import FORMER_FILE, listing, trace_of
from programs import KEEPER

WAL_MODE = 2  # byte 18 of the header


def perform(case):
    case.programs.more = ("--cutover", "exchange")
    others = [death, death, faults, daemon] + [power, power, disk] * (os.geteuid() == 0)
    former = case.bench.focus.get("former") or (not case.bench.focus and case.chance.random() < 0.15)
    if former:
        return use_former_file(case, former)
    if case.bench.focus or case.chance.random() < 0.5:
        open_meanwhile(case)
        return check_mode(case)
    other = case.chance.choice(others)
    other.perform(case)
    # A disk that refuses writes may also refuse the header of the log.
    return None if other in (faults, disk) else check_mode(case)


def open_meanwhile(case):
    case.make(rows=24, page_size=4096, start="clean", journal=case.chance.choice(("wal", "wal", "delete")))
    openers = case.bench.focus.get("openers") or case.chance.choice(("many", "many", "patient", "late", "stale"))
    modes = {
        "many": many_openers, "patient": lambda _: ["patient"], "late": lambda _: ["late"],
        "stale": lambda _: ["comer", "comer", "patient"]}[openers](case)
    case.note("apps: " + ", ".join(modes))
    (delay_lease if openers == "late" else delay_exchange)(case, openers)
    apps = writers.Apps(case, modes)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit, more=("--busy-timeout", "2s"))
    case.programs.untrace()
    if openers != "late":
        apps.await_writes()
    if openers == "stale":
        apps.use_stale_files()
    apps.end()
    case.extra_before = apps.extra(complete=False)
    case.note(f"cutover: {(answer.report or {}).get('cutover')}")
    case.conclude(answer, extra=apps.extra(), finish=case.chance.random() < 0.2)


def many_openers(case):
    # A fleeting app would take the log away by itself.
    kinds = ("opener",) if case.recipe.journal == "wal" else ("fleeting", "fleeting", "opener")
    modes = [case.chance.choice(kinds) for _ in range(case.chance.choice((1, 2, 3, 4)))]
    if case.chance.random() < 0.1:
        modes.append(case.chance.choice(("writer", "reader", "vacuum")))
    return modes


def delay_exchange(case, openers):
    """Holds the keeper up before the exchange, while it has the leases, and after it."""
    waits = (150, 250) if openers in ("patient", "stale") else (0, 2, 20, 60)
    before, after = (case.chance.choice(waits) for _ in range(2))
    case.note(f"the keeper waits {before} ms before the exchange and {after} ms after it")
    delays = f":delay_enter={before}ms" * (before > 0) + f":delay_exit={after}ms" * (after > 0)
    if delays:
        case.programs.trace(
            KEEPER, case.programs.next_start(KEEPER), ["-e", "trace=renameat2", "-e", "inject=renameat2" + delays])


def delay_lease(case, openers):
    """Holds the keeper up before it gives back the lease of the file that left: nobody looks who waits then."""
    del openers
    found = trace_of(case, KEEPER, death.key(case), "F_SETLEASE, F_UNLCK")[1]
    if not found:
        raise AssertionError("an undisturbed exchange gives no lease back")
    name, number = found[-1]
    case.note(f"the keeper waits 600 ms before {name} number {number}, which gives the lease back")
    case.programs.trace(
        KEEPER, case.programs.next_start(KEEPER),
        ["-e", f"trace={name}", "-e", f"inject={name}:delay_enter=600ms:when={number}"])


def use_former_file(case, how):
    """Everything is killed right after the exchange: nothing keeps others from the file that left, the only backup."""
    if how is True:
        how = case.chance.choice(("written", "written", "replaced", "stale", "stale"))
    case.make(rows=24, page_size=4096, start="clean", journal="delete" if how == "written" else case.chance.choice(
        ("wal", "delete")))
    exchanges = trace_of(case, KEEPER, death.key(case), "RENAME_EXCHANGE")[1]
    if not exchanges:
        raise AssertionError("an undisturbed run does not exchange the store")
    case.note(f"everything is killed after the exchange; the file that left is {how}")
    modes = {"written": ["patient"], "stale": ["former", "former"]}.get(how)
    apps = writers.Apps(case, modes) if modes else None
    # Before the exchange, while it has the leases, the keeper waits until an app waits in open(2).
    death.stop_and_kill(
        case, exchanges[0], lambda: case.programs.start(case.programs.migration(case.store, case.state)),
        delays="delay_enter=150ms:delay_exit=500ms",
        spared=[process.pid for process in apps.processes] if apps is not None else ())
    replaced = how == "replaced" and case.open_phases() and case.identify(case.read_copy())[0] == "new"
    if replaced:
        # Somebody helps himself with an earlier copy. Only the backup has what this copy may lack.
        shutil.copyfile(next(backups_of(case)), case.folder + "/copy.store")
        os.rename(case.folder + "/copy.store", case.store)
    extra = None
    if how == "written":
        apps.await_writes()
        apps.end()
        extra = apps.extra()
    # Until the recovery nothing keeps an app from the file that left: nobody else may write before.
    case.await_end(spared=[process.pid for process in apps.processes] if how == "stale" else ())
    recovery = case.programs.recover(case.store, case.state, case.bench.limit)
    case.check_hang(recovery, "the recovery")
    if how == "stale":
        extra = use_stale_files(case, apps)
    if extra is not None:
        case.extra_before = apps.extra(complete=False)
        extra.acknowledged -= told_of_backup(case)
    version = case.require_whole("after recovery", extra=extra)
    case.check_ledger(version)
    case.check_leftovers(version)
    if replaced:
        case.require_backup(
            next((run["backup"] for run in case.ledger()[0] if run.get("backup")), None), "the file that left")


def use_stale_files(case, apps):
    """Has another app write the store beside those on the file that left. Returns what it wrote."""
    others = writers.Apps(case, ["opener"], first=len(apps.modes))
    others.await_writes()
    apps.use_stale_files()
    for group in (apps, others):
        group.end()
    case.await_end()
    if case.open_phases():
        # An app had the store locked.
        case.check_hang(case.programs.recover(case.store, case.state, case.bench.limit), "the recovery")
    apps.extra()  # Reports what they found.
    return others.extra()


def backups_of(case):
    return (os.path.join(case.backups, name) for name in listing(case.backups) if name.endswith(".backup"))


def told_of_backup(case):
    """The rows of apps in a backup, if the ledger says that it has writes that the store lacks."""
    names = set()
    for run in case.ledger()[0]:
        if any(FORMER_FILE in note for note in run.get("notes", ())) and run.get("backup"):
            case.former_file_is_used = True
            rows = case.read_copy(run["backup"]).get("rows", {})
            names |= {row[1] for row in rows.get("parcel" if case.recipe.format == "coredata" else "account", ())}
    return names


def check_mode(case):
    """An exchange takes the log away for its time; in the end the store must have it again."""
    if case.recipe.journal == "wal" and os.path.exists(case.store):
        with open(case.store, "rb") as stream:
            if stream.read(100)[18] != WAL_MODE:
                case.problem("lost", "the store's write-ahead log was not turned on again")
