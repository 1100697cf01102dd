"""Full disks: store and state folder where a run does not fit, or just fits, or fits for a while."""

import os

from mounts import Mount

FULL = "I108"


def perform(case):
    kind = case.chance.choice(("tmpfs", "tmpfs", "ext4"))
    mount = Mount(case, kind, "64m")
    case.make(rows=120, padding=case.chance.choice((0, 1000)), behaviour=case.chance.choice(("", "", "slow")))
    size = os.path.getsize(case.store)
    mount.sync()
    # From nothing to more than a run needs: backup, clone, journals, the space that is kept free.
    left = int(size * case.chance.random() * 7) + case.chance.choice((0, 0, 1 << 20))
    free = mount.free()
    filler = os.path.join(mount.folder, "filler")
    fill(filler, max(0, free - left))
    case.note(f"{kind}, {mount.free()} bytes free, the store has {size}")
    answer = case.programs.migrate(case.store, case.state, case.bench.limit)
    error = (answer.report or {}).get("error") or {}
    if answer.report is not None and error and error.get("code") != FULL:
        case.problem("untrue", f"a full disk is reported as {error.get('code')}: {error.get('cause')}")
    if case.chance.random() < 0.3:
        recovery = case.programs.recover(case.store, case.state, case.bench.limit)
        case.check_hang(recovery, "the recovery on a full disk")
    os.unlink(filler)
    case.conclude(answer)


def fill(path, size):
    with open(path, "wb") as stream:
        try:
            os.posix_fallocate(stream.fileno(), 0, max(size, 1))
        except OSError:
            pass
