"""Starting Instar's programs, with strace between them where a case asks for it.

A case has a folder `bin` that stands for the build folder (`INSTAR_BUILD_DIR`). Its keeper and worker are scripts: the
n-th start of a program reads `PROGRAM.n.strace`, and where that exists, the program runs under strace with those
arguments. `strace -D` leaves the program the child of whoever started it, so nobody notices.
"""

import json
import os
import re
import select
import signal
import subprocess
from dataclasses import dataclass, field

from clock import STEP, Clock, below

KEEPER, WORKER, SUPERVISOR, DAEMON = "instar-keeper", "instar-worker", "instarctl", "instard"

# A mutated keeper takes the place of the build's (`mutate.py`).
WRAPPER = """#!/bin/sh
set -C
n=1
while ! {{ echo $$ >"{case}/{program}.$n"; }} 2>/dev/null; do n=$((n + 1)); done
{environment}
[ -f "{case}/{program}.$n.strace" ] || exec "{path}" "$@"
. "{case}/{program}.$n.strace"
"""

# Calls that change what is on disk, or what others may do with it. Cases choose these more often than others.
WRITES = frozenset(
    "write pwrite64 writev pwritev fsync fdatasync sync_file_range rename renameat renameat2 unlink unlinkat ftruncate "
    "fallocate link linkat symlink mkdir rmdir fchmod fchown chmod copy_file_range sendfile".split())
LOCKS = frozenset("fcntl flock openat close kill sendto recvfrom lseek munmap".split())
# Killing at these says nothing, or strace cannot inject there.
IGNORED = frozenset("execve exit exit_group rt_sigreturn restart_syscall vfork clone clone3 rt_sigsuspend".split())


@dataclass
class Answer:
    """How one call of a program ended."""

    status: int = 0
    output: str = ""
    messages: str = ""
    hung: bool = False
    # What was still there of a program that hung, and what it waited for.
    left: str = ""
    seconds: float = 0.0
    objects: list = field(default_factory=list)

    @property
    def report(self):
        """The report of the run: the first object with a result, or an error that concerns no store."""
        return self.objects[0] if self.objects else None


class Programs:
    """The programs of one build, as one case starts them."""

    def __init__(self, build, folder, plugin):
        self.build, self.folder, self.plugin = build, folder, plugin
        self.bin = os.path.join(folder, "bin")
        self.starts = os.path.join(folder, "starts")
        # Options of every migration of the case.
        self.more = ()
        # "rehearse" where the case's run is a rehearsal.
        self.verb = "migrate"
        os.makedirs(self.bin)
        os.makedirs(self.starts)
        for name in ("libInstar.so", "Modules", "InstarMacros-tool"):
            os.symlink(os.path.join(build, name), os.path.join(self.bin, name))
        self.paths = {program: os.path.join(build, program) for program in (KEEPER, WORKER)}
        self.paths[KEEPER] = os.environ.get("TORTURE_KEEPER", self.paths[KEEPER])
        # The supervisor clears the environment of a keeper.
        mutation = os.environ.get("TORTURE_MUTATION")
        environment = f"export TORTURE_MUTATION='{mutation}'" if mutation else ""
        for program, real in self.paths.items():
            path = os.path.join(self.bin, program)
            with open(path, "w") as stream:
                stream.write(WRAPPER.format(case=self.starts, program=program, path=real, environment=environment))
            os.chmod(path, 0o755)

    # strace

    def next_start(self, program):
        """The number of the next start of a keeper or a worker."""
        number = 1
        while os.path.exists(os.path.join(self.starts, f"{program}.{number}")):
            number += 1
        return number

    def trace(self, program, number, options, log=None):
        """Has the n-th start of a keeper or a worker run under strace."""
        words = ["/usr/bin/strace", "-D", "-f", "-q", "-q", "-b", "execve", "-o", log or "/dev/null", *options]
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        with open(os.path.join(self.starts, f"{program}.{number}.strace"), "w") as stream:
            stream.write(f"exec {quoted} '{self.paths[program]}' \"$@\"\n")

    def shorten_writes(self, program, number, library, which):
        """Has the n-th start of a program write short: its `which`-th write, or "every" one."""
        with open(os.path.join(self.starts, f"{program}.{number}.strace"), "w") as stream:
            stream.write(
                f"export TORTURE_SHORT_WRITE={which} LD_PRELOAD='{library}'\n"
                f"exec '{self.paths[program]}' \"$@\"\n")

    def untrace(self):
        """Forgets the arguments for starts that have not happened."""
        for name in os.listdir(self.starts):
            if name.endswith(".strace"):
                os.unlink(os.path.join(self.starts, name))

    def pids(self, program):
        """The processes of a program that this case has started, latest first."""
        found = []
        for number in range(self.next_start(program) - 1, 0, -1):
            try:
                with open(os.path.join(self.starts, f"{program}.{number}")) as stream:
                    found.append(int(stream.read()))
            except (OSError, ValueError):
                continue
        return found

    # Calls

    def start(self, arguments, strace=None, log=None, environment=None):
        """Starts `instarctl` in a session of its own."""
        command = [os.path.join(self.build, SUPERVISOR), *arguments]
        if strace is not None:
            command = ["/usr/bin/strace", "-f", "-q", "-q", "-b", "execve", "-o", log or "/dev/null", *strace, *command]
        return self.start_command(command, environment)

    def start_command(self, command, environment=None):
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith("INSTAR_")}
        variables.update(INSTAR_BUILD_DIR=self.bin, **(environment or {}))
        # What a plugin prints need not be text.
        output = open(os.path.join(self.folder, "output"), "w+", errors="replace")
        messages = open(os.path.join(self.folder, "messages"), "w+", errors="replace")
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=messages, env=variables,
            start_new_session=True)
        process.files = (output, messages)
        process.clock = Clock(lambda: [process.pid])
        return process

    def finish(self, process, limit):
        """Waits for a program; one that takes longer than `limit` seconds of its clock is killed, and has hung."""
        answer = Answer()
        while process.poll() is None and not await_any([process.pid], STEP):
            if process.clock.read() < limit:
                continue
            answer.hung = True
            answer.left = states(process.pid)
            kill_group(process)
            break
        answer.status = process.wait()
        answer.seconds = process.clock.age
        texts = []
        for stream in process.files:
            stream.seek(0)
            texts.append(stream.read())
            stream.close()
        answer.output, answer.messages = texts
        for line in answer.output.splitlines():
            try:
                answer.objects.append(json.loads(line))
            except ValueError:
                pass
        return answer

    def migrate(self, store, state, limit=60, plugin=None, strace=None, log=None, more=()):
        process = self.start(self.migration(store, state, plugin, more), strace=strace, log=log)
        return self.finish(process, limit)

    def migration(self, store, state, plugin=None, more=()):
        """`store`: one, or a list of several."""
        return [
            self.verb, *([store] if isinstance(store, str) else store), "--plugin", plugin or self.plugin, "--state-dir", state, "--json", *self.more, *more]

    def recover(self, store, state, limit=60, strace=None, log=None):
        """A command first recovers the interrupted runs of the store that it names; without a plugin it ends then."""
        return self.finish(self.start(self.recovery(store, state), strace=strace, log=log), limit)

    def recovery(self, store, state):
        return ["migrate", *([store] if isinstance(store, str) else store), "--state-dir", state, "--json"]


def await_any(pids, seconds):
    """Waits until one of these children has ended, without asking again and again. Returns whether one has."""
    waiting = select.poll()
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        for descriptor in descriptors:
            waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def states(root):
    """The processes of a program, each with the places in the kernel where its threads wait."""
    found = []
    for pid in below(root):
        try:
            with open(f"/proc/{pid}/comm") as stream:
                name = stream.read().strip()
            waits = set()
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/stat") as stream:
                    state = stream.read().rpartition(")")[2].split()[0]
                with open(f"/proc/{pid}/task/{thread}/wchan") as stream:
                    waits.add(f"{state} {stream.read()}")
        except OSError:
            continue
        found.append(f"{name} ({', '.join(sorted(waits))})")
    return ", ".join(found)


def kill_group(process):
    """Ends a program and what it has started and not put in another group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


# Traces

CALL = re.compile(r"^(\d+) +([a-z_0-9]+)\((.*)")


def calls(log):
    """Returns each system call of a trace as (name, its number among the calls of that name by that thread)."""
    return [(name, number) for name, number, _ in lines(log)]


def lines(log):
    """Returns each system call of a trace with its line: (name, number, line)."""
    counts, found = {}, []
    with open(log, errors="replace") as stream:
        for line in stream:
            match = CALL.match(line)
            if not match:
                continue
            thread, name = match.group(1), match.group(2)
            number = counts.get((thread, name), 0) + 1
            counts[thread, name] = number
            if name not in IGNORED:
                found.append((name, number, line.rstrip()))
    return found


def choose(chance, found, names=None):
    """Chooses a call: mostly one that writes, sometimes one that locks, sometimes any."""
    if names is None:
        draw = chance.random()
        names = WRITES if draw < 0.7 else LOCKS if draw < 0.85 else None
    wanted = [call for call in found if names is None or call[0] in names] or found
    return chance.choice(wanted) if wanted else None
