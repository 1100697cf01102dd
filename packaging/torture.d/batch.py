"""Batches: one command, or one instard, migrates many stores; a program dies, the power is cut or the disk fills up in
the middle.

The stores are in one folder or in two, in both formats. Each must be whole, run once, and be reported as it is found; a
plugin that fails on one of them fails there alone. It asks for nothing but the command line, so it does not matter how
many keepers and workers serve a batch.
"""

import copy
import os
import shutil

import daemon
import death
import disk
import power
import stores
from case import SIDES, listing
from mounts import Mount
from programs import DAEMON, KEEPER, SUPERVISOR, WORKER, Answer

# The calls at which a program dies. Each store makes some of each.
CALLS = {
    KEEPER: ("pwrite64", "fdatasync", "fsync", "rename", "unlink", "sendto", "recvfrom", "openat", "renameat2"),
    WORKER: ("pwrite64", "openat", "sendto", "recvfrom", "fcntl"),
    SUPERVISOR: ("write", "fsync", "rename", "sendto", "recvfrom", "unlink"),
}
# What a plugin does so that the run of one store fails.
FAILURES = ("throw", "trap", "abort", "exit", "hang", "remove-clone", "sql CREATE TABLE extra (value)")


def perform(case):
    kinds = ["death", "death", "death", "failure", "daemon"] + ["disk", "power", "power"] * (os.geteuid() == 0)
    kind = case.chance.choice(kinds)
    case.needs_code = kind == "failure"
    mount = None
    if kind == "disk":
        mount = Mount(case, "tmpfs", "64m")
    elif kind == "power":
        mount = Mount(case, *case.chance.choice((("ext4", "128M"), ("xfs", "320M"))))
    count = case.chance.choice((3, 8, 8, 20))
    batch = Batch(case, count, folders=1 if kind == "daemon" else case.chance.choice((1, 1, 2)))
    case.note(f"{kind}, {count} stores")
    perform_kind = {
        "death": die, "failure": fail, "daemon": serve, "disk": lambda each: fill(each, mount),
        "power": lambda each: lose_power(each, mount)}
    perform_kind[kind](batch)


class Batch:
    """The stores of a case. Each is a case of its own, with the problems and the state folder of the whole."""

    def __init__(self, case, count, folders):
        self.case = case
        self.members = []
        names = [case.data, os.path.join(case.data, "second")][:folders]
        for folder in names:
            os.makedirs(folder, exist_ok=True)
        exchanged = case.chance.random() < 0.3
        if exchanged:
            case.programs.more = ("--cutover", "exchange")
        for number in range(count):
            member = copy.copy(case)
            member.notes = []
            folder = case.chance.choice(names)
            member.store = os.path.join(folder, f"{number:02}.store")
            member.backups = os.path.join(folder, ".instar")
            member.make(rows=case.chance.choice((3, 12, 24)), page_size=4096)
            self.members.append(member)

    @property
    def paths(self):
        return [member.store for member in self.members]

    def start(self, strace=None, plugin=True, more=()):
        programs, state = self.case.programs, self.case.state
        arguments = (
            programs.migration(self.paths, state, more=more) if plugin else programs.recovery(self.paths, state))
        return programs.start(arguments, strace=strace)

    def finish(self, process, limit=120):
        answer = self.case.programs.finish(process, limit)
        self.case.check_hang(answer, "the command")
        return answer

    def require_whole(self, when, copy=False):
        """Returns the version of each store."""
        return [member.require_whole(f"{os.path.basename(member.store)} {when}", copy) for member in self.members]

    def check_reports(self, answer, versions):
        """Each store has one report, and it is true. The exit status is 0 exactly where all are migrated or current."""
        if answer.hung or answer.status is None or answer.status < 0:
            return
        reports = {}
        for report in answer.objects:
            if report.get("store") in self.paths and "result" in report:
                reports.setdefault(report["store"], []).append(report)
        for member, version in zip(self.members, versions):
            name, found = os.path.basename(member.store), reports.get(member.store, [])
            if len(found) != 1:
                member.problem("untrue", f"{name} has {len(found)} reports: {answer.messages[-300:]}")
                continue
            one = Answer(status=answer.status, objects=found)
            # The exit status is that of the whole.
            one.status = 5 if (found[0].get("error") or {}).get("code") == "I106" else {
                "migrated": 0, "current": 0, "failed": 1, "refused": 3, "busy": 4}.get(found[0]["result"], -1)
            member.check_report(one, version, f"the report of {name}")
        succeeded = all(
            report["result"] in ("migrated", "current") for found in reports.values() for report in found)
        if (answer.status == 0) != (succeeded and len(reports) == len(self.members)):
            self.case.problem("untrue", f"exit status {answer.status}, but the results are " + ", ".join(
                sorted({report["result"] for found in reports.values() for report in found})))

    def conclude(self, answer=None):
        """Recovers once, checks all stores, and migrates those that are left; none may run twice."""
        before = self.require_whole("before recovery", copy=True)
        if answer is not None:
            self.check_reports(answer, before)
        self.case.await_end()
        self.finish(self.start(plugin=False))
        versions = self.require_whole("after recovery")
        self.check_state(versions)
        answer = self.finish(self.start())
        versions = self.require_whole("after the next run")
        self.check_reports(answer, versions)
        if any(version != "new" for version in versions) or answer.status != 0:
            self.case.problem("untrue", f"the next run does not migrate all stores: {answer.messages[-600:]}")
        self.check_state(versions)

    def check_state(self, versions):
        """Ledger, backups and leftovers of all stores."""
        for member, version in zip(self.members, versions):
            member.check_ledger(version)
        runs, _ = self.case.ledger()
        migrated = [run["store"] for run in runs if run.get("result") == "migrated"]
        for path in sorted({path for path in migrated if migrated.count(path) > 1}):
            self.case.problem("untrue", f"the ledger has {migrated.count(path)} migrations of {path}")
        named = {run["backup"] for run in runs if run.get("backup")}
        for folder in sorted({os.path.dirname(path) for path in self.paths}):
            self.check_folder(folder, named, versions)
        for part, kept in (("phases", ()), ("ledger", ("ledger.jsonl",)), ("holds", ())):
            others = set(listing(os.path.join(self.case.state, part))) - set(kept)
            if others:
                self.case.problem("leftovers", f"state/{part}: " + ", ".join(sorted(others)))

    def check_folder(self, folder, named, versions):
        here = [(member, version) for member, version in zip(self.members, versions)
                if os.path.dirname(member.store) == folder]
        own, backups = {".instar", "state", "second"}, set()
        for member, version in here:
            name = os.path.basename(member.store)
            own |= {name, "." + name.rsplit(".", 1)[0] + "_SUPPORT"}
            own |= {name + side for side in SIDES if os.path.exists(member.store + side) and member.side_may_stay(side)}
            of_store = [each for each in listing(member.backups) if each.startswith(name) and each.endswith(".backup")]
            if version == "new" and len(of_store) != 1:
                self.case.problem("lost" if not of_store else "leftovers", f"{name} has {len(of_store)} backups")
            for backup in of_store:
                if os.path.join(member.backups, backup) not in named:
                    self.case.problem("leftovers", f"a backup that no run in the ledger names: {backup}")
                backups |= {backup, f".{backup[:-len('.backup')]}_SUPPORT", backup[:-len("backup")] + "json"}
            member.check_external()
        strays = set(listing(folder)) - own | set(listing(os.path.join(folder, ".instar"))) - backups
        if strays:
            self.case.problem("leftovers", f"in {folder}: " + ", ".join(sorted(strays)))


def call_of(case, program, count):
    """A call somewhere in the batch, as (name, number)."""
    return case.chance.choice(CALLS[program]), case.chance.randrange(1, 6 * count)


def die(batch):
    case, count = batch.case, len(batch.members)
    victim = case.chance.choice((KEEPER, KEEPER, WORKER, SUPERVISOR, "all"))
    program = KEEPER if victim == "all" else victim
    call = call_of(case, program, count)
    if program == WORKER:
        # A worker serves one store or many.
        call = call[0], case.chance.randrange(1, 20)
    start = 1 if program != WORKER else case.chance.randrange(1, count + 2)
    case.note(f"{victim} (start {start}) is killed at {call[0]} number {call[1]}")
    answer = None
    if victim == "all":
        death.stop_and_kill(case, call, batch.start, number=start)
    elif victim == SUPERVISOR:
        answer = batch.finish(batch.start(strace=death.injection(call, "KILL")))
    else:
        case.programs.trace(program, start, death.injection(call, "KILL"))
        answer = batch.finish(batch.start())
        case.programs.untrace()
    batch.conclude(answer)


def fail(batch):
    """The run of one store fails in its plugin: the others are migrated."""
    case = batch.case
    victim = case.chance.choice(batch.members)
    behaviour = case.chance.choice(FAILURES)
    for path in (victim.store, *(victim.store + side for side in SIDES)):
        if os.path.exists(path):
            os.unlink(path)
    # The new store has no external values.
    shutil.rmtree(os.path.dirname(stores.external_folder(victim.store)), ignore_errors=True)
    victim.make(rows=12, page_size=4096, start="clean", external=False, behaviour=behaviour)
    case.note(f"{os.path.basename(victim.store)}: {behaviour}")
    answer = batch.finish(batch.start(more=("--stage-time-limit", "5s")))
    versions = batch.require_whole("after the run", copy=True)
    batch.check_reports(answer, versions)
    for member, version in zip(batch.members, versions):
        if member is victim and version != "old":
            case.problem("untrue", f"{os.path.basename(member.store)} was migrated in spite of '{behaviour}'")
        if member is not victim and version == "old":
            case.problem("untrue", f"{os.path.basename(member.store)} was not migrated: {answer.messages[-300:]}")
    case.await_end()
    batch.finish(batch.start(plugin=False))
    batch.check_state(batch.require_whole("after recovery"))


def fill(batch, mount):
    """The disk has room for some of the runs."""
    case = batch.case
    mount.sync()
    size = max(os.path.getsize(path) for path in batch.paths)
    left = int(size * len(batch.members) * case.chance.random() * 4)
    filler = os.path.join(mount.folder, "filler")
    disk.fill(filler, max(0, mount.free() - left))
    case.note(f"{mount.free()} bytes free, the largest store has {size}")
    answer = batch.finish(batch.start())
    for report in answer.objects:
        error = report.get("error") or {}
        if error and error.get("code") != disk.FULL:
            case.problem("untrue", f"a full disk is reported as {error.get('code')}: {error.get('cause')}")
    os.unlink(filler)
    batch.conclude(answer)


def lose_power(batch, mount):
    """The power is cut while some runs have ended, some are open, and some have not begun."""
    case, count = batch.case, len(batch.members)
    mount.sync()
    call, start = call_of(case, KEEPER, count), case.chance.randrange(1, 5)
    case.note(f"{mount.kind}; the power is cut after {call[0]} number {call[1]} of keeper {start}")
    power.cut_at(case, mount, call, case.programs.migration(batch.paths, case.state), number=start)
    batch.conclude()


def serve(batch):
    """instard, or its keeper, is killed in the middle; the next one finishes."""
    case, count = batch.case, len(batch.members)
    service = daemon.Daemon(case)
    victim = case.chance.choice((DAEMON, KEEPER))
    call = call_of(case, SUPERVISOR if victim == DAEMON else KEEPER, count)
    case.note(f"{victim} is killed at {call[0]} number {call[1]}")
    if victim == DAEMON:
        service.start(death.injection(call, "KILL"))
        service.await_migration(count)
        service.stop(9)
        case.await_end()
        batch.require_whole("after the death of instard", copy=True)
    else:
        # The first keepers read plugins and probe.
        case.programs.trace(KEEPER, case.chance.randrange(1, 5), death.injection(call, "KILL"))
    service.start()
    if not service.await_migration(count):
        case.problem("hangs", f"instard did not migrate all stores within {case.bench.limit:.0f} s")
    service.stop()
    case.programs.untrace()
    batch.conclude()
