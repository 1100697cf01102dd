"""Power cuts: the file system under store and state folder stops right after a call of the keeper, without its cache.

Before that, the kernel may have written any of its pages, so some of the files, or parts of them, are written back
first. What was not written by then is gone when the file system is mounted again.
"""

import ctypes
import os
import time

import death
from case import trace_of
from mounts import LIBC, Mount
from programs import KEEPER, choose

WRITE_BACK = 1 | 2 | 4  # SYNC_FILE_RANGE_WAIT_BEFORE | WRITE | WAIT_AFTER


def perform(case):
    mount = Mount(case, case.chance.choice(("ext4", "xfs")))
    case.make(rows=24, page_size=4096)
    mount.sync()
    if case.bench.focus.get("drop"):
        return drop(case, mount)
    after_end = case.chance.random() < 0.1
    if after_end:
        case.note(f"{mount.kind}; the power is cut after the end")
        answer = case.programs.migrate(case.store, case.state, case.bench.limit)
        cut(case, mount)
    else:
        answer = None
        found = death.calls_of(case)
        found = found[len(found) // 3:]
        call = choose(case.chance, found)
        case.note(f"{mount.kind}; the power is cut after {call[0]} number {call[1]} of the keeper")
        cut_at(case, mount, call, case.programs.migration(case.store, case.state))
    if case.chance.random() < 0.3 and os.path.isdir(case.state + "/phases") and os.listdir(case.state + "/phases"):
        call = choose(case.chance, [call for call in trace_of(case, KEEPER, death.key(case))[1] if call[1] < 12])
        case.note(f"and again in the recovery, after {call[0]} number {call[1]}")
        case.require_whole("after the first power cut", copy=True)
        cut_at(case, mount, call, case.programs.recovery(case.store, case.state))
    return case.conclude(answer)


def drop(case, mount):
    """One fsync is not made, and the power is cut while the store is written or afterwards."""
    found = trace_of(case, KEEPER, death.key(case))[1]
    syncs = [call for call in found if call[0] in ("fsync", "fdatasync")]
    # Half of the time one that SQLite makes for the store.
    own = [call for call in trace_of(case, KEEPER, death.key(case), "@/a.store-")[1] if call in syncs]
    dropped = case.chance.choice(own if own and case.chance.random() < 0.5 else syncs)
    writes = [call for call in found[found.index(dropped):] if call[0] in ("pwrite64", "unlink", "ftruncate", "sendto")]
    if not writes:
        return case.note("no write after the call")
    call = case.chance.choice(writes)
    case.note(f"{mount.kind}; {dropped[0]} number {dropped[1]} does nothing")
    case.note(f"the power is cut after {call[0]} number {call[1]}")
    cut_at(case, mount, call, case.programs.migration(case.store, case.state), dropped)
    return case.conclude()


def cut_at(case, mount, call, command, dropped=None, number=None):
    """Cuts the power at a call of a keeper that the command starts: of the next one, or of the one with that number."""
    log = os.path.join(case.folder, "stop")
    if os.path.exists(log):
        os.unlink(log)
    options = death.injection(call, "STOP")
    if dropped:
        options = ["-e", f"trace={call[0]},{dropped[0]}", *options[2:],
                   "-e", f"inject={dropped[0]}:retval=0:when={dropped[1]}"]
    case.programs.trace(KEEPER, number or case.programs.next_start(KEEPER), options, log)
    process = case.programs.start(command)
    overdue = False
    while process.poll() is None and not death.is_stopped(log) and not overdue:
        time.sleep(0.003)
        overdue = process.clock.read() > case.bench.limit
    if overdue:
        case.problem("hangs", f"the command took more than {case.bench.limit:.0f} s")
    cut(case, mount, process)


def cut(case, mount, process=None):
    written = write_back(case)
    if written:
        case.note("the kernel had written " + ", ".join(written))
    mount.cut_power()
    if process is not None:
        death.kill_tree(process.pid)
        case.programs.untrace()
        case.programs.finish(process, 10)
    case.await_end()
    mount.mount_again()


def write_back(case):
    """Writes some files, or every other page of one, as the kernel may at any time. Returns their names."""
    if case.chance.random() < 0.4:
        return []
    files = sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(case.data) for name in names
        if not name.endswith("-shm"))
    # The store itself first: its pages must never be newer than what protects them.
    chosen = [case.store] if case.chance.random() < 0.7 else []
    chosen += [path for path in files if path != case.store and case.chance.random() < 0.15]
    names = []
    for path in chosen:
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            continue
        size = os.fstat(descriptor).st_size
        if case.chance.random() < 0.5:
            for page in range(case.chance.randrange(2), max(1, size // 4096 + 1), 2):
                LIBC.sync_file_range(
                    descriptor, ctypes.c_long(page * 4096), ctypes.c_long(4096), WRITE_BACK)
            names.append("half of " + os.path.basename(path))
        else:
            os.fdatasync(descriptor)
            names.append(os.path.basename(path))
        os.close(descriptor)
    return names
