"""A clock for programs that a busy machine holds up: a program that does not get a processor does not age.

A limit in seconds of the wall calls a slow machine a hang. So each limit of the torture is one of this clock. It adds the
time that passes while all threads of a program wait for something else, and the time of the processor that they use
while one wants one. A program that sleeps for ever, that asks again and again, or that never stops to compute reaches
its limit; one that waits for a processor, for the disk or for strace does not.
"""

import os
import time

# The time between two readings of /proc.
STEP = 0.2
TICK = 1 / os.sysconf("SC_CLK_TCK")
# R: runs, or would if it could. D: waits for the disk.
WANTING = "RD"


class Clock:
    """The age of some processes and of what they have started."""

    def __init__(self, roots):
        """`roots`: a function that returns the processes as they are now."""
        self.roots = roots
        self.age = 0.0
        self.looked = time.monotonic()
        self.used = 0.0
        self.used, _ = self.look()

    def read(self):
        """Returns the age in seconds. Looks only if some time has passed since it last did."""
        now = time.monotonic()
        if now - self.looked < STEP:
            return self.age
        # Who looks may have been held up, too: then nobody knows what the others waited for.
        passed = min(now - self.looked, 2 * STEP)
        used, wants = self.look()
        self.age += max(0.0, used - self.used) if wants else passed
        self.looked, self.used = time.monotonic(), used
        return self.age

    def look(self):
        """Returns the time of the processor used until now, and whether a thread wants one."""
        used, wants = 0.0, False
        for pid in with_tracers({each for root in self.roots() for each in below(root)}):
            try:
                fields = fields_of(f"/proc/{pid}/stat")
                # Its own, and that of its children that have ended.
                used += TICK * sum(int(field) for field in fields[11:15])
                wants = wants or any(
                    fields_of(f"/proc/{pid}/task/{thread}/stat")[0] in WANTING
                    for thread in os.listdir(f"/proc/{pid}/task"))
            except OSError:
                continue
        return used, wants


def fields_of(path):
    """The fields of a `stat` file behind the name, from the state on."""
    with open(path) as stream:
        return stream.read().rpartition(")")[2].split()


def below(root):
    """A process and its descendants, parents first."""
    found = [root]
    for pid in found:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as stream:
                    found += [child for child in map(int, stream.read().split()) if child not in found]
        except OSError:
            continue
    return found


def with_tracers(pids):
    """Adds each strace that holds one of these: 'strace -D' is not above what it traces."""
    found = set(pids)
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status") as stream:
                tracer = next(int(line.split()[1]) for line in stream if line.startswith("TracerPid:"))
        except (OSError, StopIteration):
            continue
        if tracer:
            found.add(tracer)
    return found
