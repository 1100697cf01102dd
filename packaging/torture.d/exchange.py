"""Exchange: apps that open a store in the moment in which it is exchanged for its clone; death, faults and the like then.

strace holds the keeper up before and after the exchange, or before it gives the lease of the file that left back. So
apps wait in open(2) for that file, for the one that comes, or for both. A fleeting app has no journal file, so SQLite
itself does not protect it from writing to a file that has left; a patient one writes when all locks are gone.
"""

import os

import daemon
import death
import disk
import faults
import power
import writers
from case import trace_of
from programs import KEEPER

WAL_MODE = 2  # byte 18 of the header


def perform(case):
    case.programs.more = ("--cutover", "exchange")
    others = [death, death, faults, daemon] + [power, power, disk] * (os.geteuid() == 0)
    if case.bench.focus or case.chance.random() < 0.5:
        open_meanwhile(case)
        return check_mode(case)
    other = case.chance.choice(others)
    other.perform(case)
    # A disk that refuses writes may also refuse the header of the log.
    return None if other in (faults, disk) else check_mode(case)


def open_meanwhile(case):
    case.make(rows=24, page_size=4096, start="clean", journal=case.chance.choice(("wal", "wal", "delete")))
    openers = case.bench.focus.get("openers") or case.chance.choice(("many", "many", "patient", "late"))
    modes = {"many": many_openers, "patient": lambda _: ["patient"], "late": lambda _: ["late"]}[openers](case)
    case.note("apps: " + ", ".join(modes))
    (delay_lease if openers == "late" else delay_exchange)(case, openers)
    apps = writers.Apps(case, modes)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit, more=("--busy-timeout", "2s"))
    case.programs.untrace()
    if openers != "late":
        apps.await_writes()
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
    waits = (150, 250) if openers == "patient" else (0, 2, 20, 60)
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


def check_mode(case):
    """An exchange takes the log away for its time; in the end the store must have it again."""
    if case.recipe.journal == "wal" and os.path.exists(case.store):
        with open(case.store, "rb") as stream:
            if stream.read(100)[18] != WAL_MODE:
                case.problem("lost", "the store's write-ahead log was not turned on again")
