"""Faults: a call fails with ENOSPC, EIO or EINTR, once or from then on, or writes only half, in a run or a recovery.

strace makes the call fail instead of being made. Only calls on the files of the case fail, not those on its channels.
"""

import os
import subprocess

import death
from case import HERE, trace_of
from programs import KEEPER, SUPERVISOR, choose

ERRORS = {
    "write": ("ENOSPC", "EIO", "EINTR", "EDQUOT"), "pwrite64": ("ENOSPC", "EIO", "EINTR", "EDQUOT"),
    "sendfile": ("ENOSPC", "EIO", "EINVAL"), "copy_file_range": ("ENOSPC", "EIO", "EXDEV"),
    "fsync": ("EIO", "ENOSPC", "EINTR"), "fdatasync": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC", "EXDEV"), "link": ("EIO", "ENOSPC", "EMLINK", "EXDEV"),
    "ftruncate": ("EIO", "ENOSPC", "EINTR"), "fallocate": ("ENOSPC", "EOPNOTSUPP"),
    "unlink": ("EIO", "EROFS"), "unlinkat": ("EIO", "EROFS"), "rmdir": ("EIO",),
    "mkdir": ("ENOSPC", "EIO"), "openat": ("EMFILE", "EIO", "ENOSPC"), "fchmod": ("EIO",), "fchown": ("EIO",),
    "pread64": ("EIO",), "fcntl": ("EIO", "EINTR"),
}
RARE = frozenset(("openat", "pread64", "fcntl"))


def perform(case):
    case.make(rows=24, page_size=4096)
    wanted = case.bench.focus.get("error")
    if not wanted and case.chance.random() < 0.15:
        return write_short(case)
    program = case.chance.choices((KEEPER, SUPERVISOR), (4, 1))[0]
    in_recovery = case.chance.random() < 0.25
    if in_recovery:
        death.kill_all(case, late=True)
        case.await_end()
        program = KEEPER
    rare = case.chance.random() < 0.15
    names = RARE if rare else frozenset(ERRORS) - RARE
    if wanted:
        names = frozenset(name for name, errors in ERRORS.items() if wanted in errors)
    starts = trace_of(case, program, death.key(case), "@/")
    found = [call for number in starts for call in starts[number]]
    if program == KEEPER and case.recipe.is_compacted and not in_recovery:
        found = death.calls_of(case)
    call = choose(case.chance, found, names)
    name, number = call
    if in_recovery:
        # A recovery makes far fewer calls than a run.
        number = case.chance.randrange(1, 6)
    error = wanted or case.chance.choice(ERRORS[name])
    lasting = error not in ("EINTR", "EXDEV", "EMLINK") and case.chance.random() < 0.4
    # A disk that refuses all writes refuses SQLite's rollback, too.
    case.journal_may_stay = name == "unlink" or lasting
    case.note(f"{name} number {number}{' and all later ones' if lasting else ''} of {program} ends with {error}"
              + (" in the recovery" if in_recovery else ""))
    options = ["-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={number}{'+' if lasting else ''}"]
    strace = None
    if program == SUPERVISOR:
        strace = options
    else:
        case.programs.trace(KEEPER, case.programs.next_start(KEEPER), options)
    if in_recovery:
        answer = case.programs.recover(case.store, case.state, case.bench.limit, strace=strace)
        case.check_hang(answer, "the recovery with a fault")
        answer = None
    else:
        answer = case.programs.migrate(case.store, case.state, case.bench.limit, strace=strace)
    case.programs.untrace()
    if program == SUPERVISOR and answer.report is None and answer.status > 0:
        # It could not write its report either. Or another thread's call of that number was meant: strace counts the
        # calls of each thread, and the first thread's open libraries.
        if name == "write" or "error while loading shared libraries" in answer.messages:
            answer = None
    return case.conclude(answer)


def write_short(case):
    """A write, or each write, of the keeper writes only the first half."""
    starts = trace_of(case, KEEPER, death.key(case), "@/")
    writes = [call for call in starts[1] if call[0] in ("write", "pwrite64", "sendfile", "copy_file_range")]
    which = "every" if case.chance.random() < 0.3 else case.chance.randrange(1, len(writes) + 1)
    case.note(f"short writes of the keeper: {which}")
    case.programs.shorten_writes(KEEPER, 1, library(case.bench.work), which)
    return case.conclude(case.programs.migrate(case.store, case.state, case.bench.limit))


def library(work):
    path = os.path.join(work, "short-write.so")
    if not os.path.exists(path):
        made = f"{path}.{os.getpid()}"
        source = os.path.join(HERE, "short-write.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O", "-o", made, source, "-ldl"], check=True, capture_output=True)
        os.rename(made, path)
    return path
