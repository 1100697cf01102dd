"""Death: SIGKILL at a system call of a run or of a recovery, chosen among those of a traced twin.

The victim is the worker, the keeper, the supervisor, or all of them at one instant: then the keeper is stopped by
SIGSTOP right after the call, and everything is killed while it cannot move.
"""

import os
import shutil
import signal
import time

from case import children, command_of, signal_process, trace_of
from clock import below
from programs import KEEPER, SUPERVISOR, WORKER, calls, choose


STOPPED = b"stopped by SIGSTOP"


def perform(case):
    victim = case.chance.choices((KEEPER, WORKER, SUPERVISOR, "all"), (35, 15, 20, 30))[0]
    in_recovery = case.chance.random() < 0.35
    case.make(rows=24, page_size=4096)
    if case.bench.focus.get("late"):
        kill_all(case, late=True)
        return case.conclude()
    if in_recovery:
        kill_all(case, late=True)
        case.await_end()
        kill_in_recovery(case, victim)
        case.conclude()
    elif victim == "all":
        kill_all(case)
        case.conclude()
    else:
        case.conclude(kill_one(case, victim))
    return None


def key(case):
    recipe = case.recipe
    kind = ("e" if recipe.external else "i") + ("l" if recipe.light else "") + ("s" if recipe.small else "")
    if recipe.free:
        kind += f"f{recipe.auto_vacuum}"
    if recipe.history is not None:
        kind += "h" + (f"{recipe.auto_vacuum}" if recipe.light else "")
    return f"{recipe.format}-{recipe.journal}-{recipe.start}-{kind}" + "".join(
        (case.programs.verb, *case.programs.more))


def calls_of(case, number=1):
    """The calls of the keeper; of a run that gives free pages back, half of the time only those on the clone."""
    starts = trace_of(case, KEEPER, key(case))
    if not case.recipe.is_compacted or case.chance.random() < 0.5:
        return starts[number]
    return trace_of(case, KEEPER, key(case), "/clone/")[number] or starts[number]


def injection(call, signal_name):
    name, number = call
    return ["-e", f"trace={name}", "-e", f"inject={name}:signal={signal_name}:when={number}"]


def kill_one(case, victim):
    starts = trace_of(case, victim, key(case))
    # The later starts of a worker do the work; the first ones only describe the plan.
    number = max(starts) if case.chance.random() < 0.7 else case.chance.choice(sorted(starts))
    call = choose(case.chance, calls_of(case, number) if victim == KEEPER else starts[number])
    case.note(f"{victim} (start {number}) is killed at {call[0]} number {call[1]}")
    options = injection(call, "KILL")
    if victim == SUPERVISOR:
        return case.programs.migrate(case.store, case.state, case.bench.limit, strace=options)
    case.programs.trace(victim, number, options)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit)
    case.programs.untrace()
    return answer


def kill_all(case, late=False):
    all_calls = trace_of(case, KEEPER, key(case))[1]
    found = all_calls[len(all_calls) // 2:] if late else calls_of(case)
    if case.bench.focus.get("late") == "commit":
        found = after_commit(case, all_calls)
    call = choose(case.chance, found)
    case.note(f"everything is killed after {call[0]} number {call[1]} of the keeper")
    stop_and_kill(case, call, lambda: case.programs.start(case.programs.migration(case.store, case.state)))


def after_commit(case, found):
    """The calls after the last write of the journal: it is cleared, which is the commit of a store with one."""
    writes = [call for call in trace_of(case, KEEPER, key(case), "@/a.store-journal")[1] if call[0] == "pwrite64"]
    last = found.index(writes[-1])
    return found[last + 1:last + 12]


def stop_and_kill(case, call, start, number=None, delays="", spared=()):
    """Starts a command, and kills everything once its keeper has made a call. Nothing happens where it ends before.

    `delays`: how long strace holds the keeper before and after the call, instead of SIGSTOP. `spared`: processes of
    apps, which live on.
    """
    log = os.path.join(case.folder, "stop")
    number = number or case.programs.next_start(KEEPER)
    options = injection(call, "STOP")
    if delays:
        options = ["-e", f"trace={call[0]}", "-e", f"inject={call[0]}:{delays}:when={call[1]}"]
    case.programs.trace(KEEPER, number, options, log)
    process = start()
    overdue = False
    while process.poll() is None and not is_stopped(log, b"(DELAYED)" if delays else STOPPED) and not overdue:
        time.sleep(0.003)
        overdue = process.clock.read() > case.bench.limit
    if overdue:
        case.problem("hangs", f"the command took more than {case.bench.limit:.0f} s")
    kill_tree(process.pid, spared)
    case.programs.untrace()
    case.programs.finish(process, 10)


def is_stopped(log, mark=STOPPED):
    try:
        with open(log, "rb") as stream:
            return mark in stream.read()
    except OSError:
        return False


def kill_tree(root, spared=()):
    """Kills a process and all below it; stops each first, so that none reacts to the end of another."""
    tree = [root]
    for pid in tree:
        signal_process(pid, signal.SIGSTOP)
        tree += [child for child in below(pid) if child not in tree]
    orphans = [pid for pid in children() if pid not in (root, *spared) and "strace" not in command_of(pid)]
    for pid in tree + orphans:
        signal_process(pid, signal.SIGKILL)


def kill_in_recovery(case, victim):
    """Recovers once to count the calls, puts the data back, and recovers again until death; perhaps twice."""
    if victim == WORKER:
        victim = KEEPER
    saved = case.folder + "/saved"
    shutil.copytree(case.data, saved, symlinks=True)
    log = case.folder + "/recovery"
    first = case.programs.next_start(KEEPER)
    for start in range(first, first + 3):
        case.programs.trace(KEEPER, start, ["-e", "signal=none"], f"{log}.{start}")
    case.programs.recover(
        case.store, case.state, case.bench.limit, strace=["-e", "signal=none"] if victim == SUPERVISOR else None, log=log)
    case.programs.untrace()
    case.await_end()
    logs = [log] if victim == SUPERVISOR else [f"{log}.{first}"]
    logs = [calls(path) for path in logs if os.path.exists(path)]
    shutil.rmtree(case.data)
    os.rename(saved, case.data)
    if not logs or not logs[0]:
        case.note("nothing to recover")
        return
    for _ in range(case.chance.choice((1, 1, 2))):
        call = choose(case.chance, logs[0])
        case.note(f"{victim} is killed in the recovery at {call[0]} number {call[1]}")
        if victim == "all":
            stop_and_kill(case, call, lambda: case.programs.start(case.programs.recovery(
                case.store, case.state)))
        elif victim == SUPERVISOR:
            case.programs.recover(case.store, case.state, case.bench.limit, strace=injection(call, "KILL"))
        else:
            case.programs.trace(KEEPER, case.programs.next_start(KEEPER), injection(call, "KILL"))
            answer = case.programs.recover(case.store, case.state, case.bench.limit)
            case.programs.untrace()
            case.check_hang(answer, "a recovery whose keeper was killed")
        case.await_end()
        case.require_whole("after a recovery that was killed", copy=True)
