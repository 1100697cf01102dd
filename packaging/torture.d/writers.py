"""Writers: apps that write, read, checkpoint and vacuum the store during the run, and stores that are replaced then.

Every write that SQLite acknowledged to an app must be in the store afterwards, exactly once. A store that is replaced,
renamed or deleted while the keeper is stopped at a call must not be reported as migrated.
"""

import os
import shutil
import signal
import subprocess
import time

import death
import stores
from case import HERE, signal_process, trace_of
from clock import STEP, Clock, below
from programs import KEEPER, SUPERVISOR, WORKER, await_any, choose

APPS = ("writer", "writer", "opener", "reader", "checkpointer", "vacuum", "holder", "locker")
SWAPS = ("replace", "replace", "rename", "delete", "link")


def perform(case):
    swaps = case.chance.random() < 0.35
    if case.bench.focus:
        swaps = "swap" in case.bench.focus
    if swaps:
        swap(case)
    else:
        compete(case)


# Apps

def compete(case):
    case.make(
        rows=case.chance.choice((24, 120)), start="clean",
        journal=case.chance.choice(("wal", "wal", "delete", "persist")),
        behaviour=case.chance.choice(("", "slow")))
    modes = [case.chance.choice(("writer", "opener"))]
    modes += [case.chance.choice(APPS) for _ in range(case.chance.randrange(3))]
    case.note("apps: " + ", ".join(modes))
    apps = Apps(case, modes)
    timeout = case.chance.choice(("100ms", "1s"))
    policy = case.chance.choice(("wait", "migrate", "migrate", "skip"))
    policy = case.bench.focus.get("policy", "wait" if case.bench.focus else policy)
    case.note(f"--when-busy {policy}")
    process = case.programs.start(case.programs.migration(
        case.store, case.state, more=("--busy-timeout", timeout, "--when-busy", policy)))
    if case.chance.random() < 0.35:
        pause(case, process)
    answer = case.programs.finish(process, case.bench.limit)
    apps.end()
    extra = apps.extra()
    case.extra_before = apps.extra(complete=False)
    case.note(f"{len(extra.acknowledged)} acknowledged writes")
    case.conclude(answer, extra=extra, finish=case.chance.random() < 0.3)


def pause(case, process):
    """Stops one of the programs for a while."""
    program = case.chance.choice((KEEPER, WORKER, SUPERVISOR))
    time.sleep(case.chance.random() * 0.25)
    pids = [process.pid] if program == SUPERVISOR else case.programs.pids(program)[:1]
    case.note(f"{program} is stopped for a while")
    for pid in pids:
        signal_process(pid, signal.SIGSTOP)
        time.sleep(case.chance.random() * 0.5)
        signal_process(pid, signal.SIGCONT)


class Apps:
    """Apps of `app.py` on one store. `first`: the number of the first one, where a case has several of these."""

    def __init__(self, case, modes, store=None, first=0):
        self.case, self.modes = case, modes
        self.logs, self.processes = [], []
        for number, mode in enumerate(modes, first):
            log = os.path.join(case.folder, f"app{number}")
            self.logs.append(log)
            self.processes.append(subprocess.Popen(
                ["/usr/bin/python3", "-IS", os.path.join(HERE, "app.py"), mode, store or case.store, log],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.clock = Clock(lambda: [process.pid for process in self.processes])
        while not all(self.lines(log) for log in self.logs):
            if self.clock.read() > 20:
                raise TimeoutError("the apps do not start")
            time.sleep(0.005)

    @staticmethod
    def lines(log):
        try:
            with open(log) as stream:
                return stream.read().splitlines()
        except OSError:
            return []

    def await_writes(self, limit=10):
        """Waits until each app that writes has written once more: what held it up must end with the run."""
        writers = [
            log for log, mode in zip(self.logs, self.modes) if mode in ("writer", "opener", "fleeting", "patient")]
        before = {log: self.acknowledged(log) for log in writers}
        end = self.clock.read() + limit
        while any(self.acknowledged(log) == before[log] for log in writers):
            if self.clock.read() > end:
                return self.case.problem("hangs", f"an app cannot write within {limit} s after the run")
            time.sleep(0.02)
        return None

    def acknowledged(self, log):
        return sum(line.startswith("ack ") for line in self.lines(log))

    def use_stale_files(self):
        """Gives apps that have a file open which is not the store the time to use it, beside those on the store."""
        count = sum("stale" in self.lines(log) for log in self.logs)
        self.case.note(f"{count} apps have a file open that is not the store")
        if count:
            time.sleep(1)

    def end(self):
        for log in self.logs:
            with open(log + ".stop", "w"):
                pass
        for process in self.processes:
            end = self.clock.read() + 60
            while process.poll() is None and not await_any([process.pid], STEP):
                if self.clock.read() > end:
                    raise TimeoutError("an app does not end")

    def extra(self, complete=True):
        tried, acknowledged = {}, set()
        for log in self.logs:
            for line in self.lines(log):
                word, _, rest = line.partition(" ")
                if word == "try":
                    size, _, name = rest.partition(" ")
                    tried[name] = int(size)
                elif word == "ack":
                    acknowledged.add(rest)
                elif word == "bad" and complete:
                    self.case.problem("lost", f"an app found: {rest}")
        return Extra(self.case.recipe.format, tried, acknowledged, complete)


class Extra:
    """The rows that apps added to a store.

    `complete`: whether all acknowledged rows must be there; a backup has those of its time.
    """

    def __init__(self, store_format, tried, acknowledged, complete):
        self.label = "parcel" if store_format == "coredata" else "account"
        self.tried, self.acknowledged, self.complete = tried, acknowledged, complete

    def remaining(self, rows):
        """Returns the rows without those of apps, and with what is wrong about these."""
        others, seen = [], set()
        for row in rows:
            name, size, label = row[1:4]
            if name not in self.tried or name in seen:
                others.append(row)
                continue
            seen.add(name)
            written = self.tried[name]
            if (size, label) not in ((written, None), (written + 1000, f"{self.label} of {written + 1000}")):
                others.append(row)
        if self.complete:
            others += [["acknowledged, but missing", name] for name in sorted(self.acknowledged - seen)]
        return others


# Stores that are replaced

def swap(case):
    kind = case.bench.focus.get("swap") or case.chance.choice(SWAPS)
    case.make(rows=24, page_size=4096, start="clean")
    if kind == "link":
        return linked(case)
    found = trace_of(case, KEEPER, death.key(case))[1]
    first, last = window(case, found)
    # SQLite itself finds out when it opens its journal; after that only the keeper can.
    if not case.bench.focus and case.chance.random() < 0.5:
        first = len(found) // 4
    call = choose(case.chance, found[first:last])
    case.note(f"{kind} of the store after {call[0]} number {call[1]} of the keeper")
    other = os.path.join(case.folder, "other")
    os.mkdir(other)
    replacement = stores.Recipe.draw(case.chance, format=case.recipe.format, start="clean", rows=9, external=False)
    replacement.light, replacement.small = case.recipe.light, case.recipe.small
    stores.make(other + "/a.store", replacement)
    moved = os.path.join(case.data, "moved.store")

    log = os.path.join(case.folder, "stop")
    case.programs.trace(KEEPER, case.programs.next_start(KEEPER), death.injection(call, "STOP"), log)
    process = case.programs.start(case.programs.migration(case.store, case.state))
    while process.poll() is None and not death.is_stopped(log):
        time.sleep(0.003)
    swapped = process.poll() is None
    # After the commit anybody may replace a store, and nobody could know of it in time.
    committed = swapped and case.identify(case.read_copy())[0] == "new"
    if swapped:
        if kind == "replace":
            os.rename(other + "/a.store", case.store)
        elif kind == "rename":
            os.rename(case.store, moved)
        else:
            os.unlink(case.store)
        # strace counts the calls of each thread and of each child that is about to become a worker: these stop too.
        while process.poll() is None and process.clock.read() < case.bench.limit:
            for pid in below(process.pid):
                signal_process(pid, signal.SIGCONT)
            time.sleep(0.02)
    answer = case.programs.finish(process, case.bench.limit)
    case.programs.untrace()
    case.check_hang(answer, "the command")
    case.await_end()
    if not swapped:
        return case.conclude(answer)
    result = (answer.report or {}).get("result")
    recovery = case.programs.recover(case.store, case.state, case.bench.limit)
    case.check_hang(recovery, "the recovery")
    if kind == "replace":
        case.old, case.new = stores.contents(replacement)
        version = case.require_whole("the replacement")
        if result == "migrated" and version == "old" and not committed:
            case.problem("untrue", "the report is 'migrated', but the replacement is at its old version")
    elif kind == "rename":
        # The log of a store that was moved without it is the app's loss; but a rollback journal is the keeper's.
        for side in ("-wal", "-journal"):
            if os.path.exists(case.store + side):
                os.rename(case.store + side, moved + side)
        version, reason = case.identify(case.read_copy(moved) if not case.recipe.external else moved_copy(case, moved))
        if version is None:
            case.problem("lost", f"the renamed store: {reason}")
    if kind != "replace" and result in ("migrated", "current") and not committed:
        case.problem("untrue", f"the report is '{result}', but the path names no store")
    inside = [name for name in os.listdir(case.data + "/.instar")] if os.path.isdir(case.data + "/.instar") else []
    strays = [name for name in inside if name.startswith("run-") or name.endswith(".copy")]
    phases = os.listdir(case.state + "/phases")
    if strays or phases:
        case.problem("leftovers", ", ".join(strays + phases))
    return None


def window(case, found):
    """The calls from the start of the cutover to its commit, as indexes of `found`.

    After the commit a store may be replaced by anybody, and nobody could know of it in time. In WAL mode there is no
    such window: from its first page on the log belongs to whatever has the store's name, which is a rule of SQLite.
    """
    def on(name, call):
        return [found.index(each) for each in trace_of(case, KEEPER, death.key(case), "@/" + name)[1]
                if each[0] == call and each in found]

    if case.recipe.journal == "wal":
        return len(found) // 4, on("a.store-wal", "pwrite64")[0]
    return on("a.store-journal", "pwrite64")[0], on("a.store>", "fdatasync")[-1]


def moved_copy(case, moved):
    """The renamed store under its first name, where its external values are."""
    folder = case.folder + "/renamed"
    os.mkdir(folder)
    for side in ("", "-wal", "-journal"):
        if os.path.exists(moved + side):
            shutil.copyfile(moved + side, folder + "/a.store" + side)
    shutil.copytree(stores.external_folder(case.store), stores.external_folder(folder + "/a.store"))
    return case.read(folder + "/a.store")


def linked(case):
    """An app uses the store under another name, a hard link, while its first name is migrated."""
    other = os.path.join(case.data, "other.store")
    os.link(case.store, other)
    case.note("an app uses a hard link of the store")
    apps = Apps(case, ["writer"], other)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit)
    apps.end()
    case.check_hang(answer, "the command")
    case.await_end()
    result = (answer.report or {}).get("result")
    if result in ("migrated", "current"):
        extra = apps.extra()
        version, reason = case.identify(case.read_copy(), extra)
        if version is None:
            case.problem("lost", f"a store with two names was migrated: {reason}")
