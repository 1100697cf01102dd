"""Daemons: instard is killed at a system call while it serves a folder, and the next one must finish what it left."""

import os
import shutil
import signal
import socket
import time

from case import signal_process
from clock import below
from programs import DAEMON, calls, choose

QUIET = ["-e", "signal=none"]


def perform(case):
    case.make(rows=24, page_size=4096, start=case.chance.choice(("clean", "pending")))
    daemon = Daemon(case)
    saved = case.folder + "/saved"
    shutil.copytree(case.data, saved, symlinks=True)
    log = case.folder + "/trace"
    daemon.start(QUIET, log)
    daemon.await_migration()
    daemon.stop()
    found = calls(log)
    shutil.rmtree(case.data)
    os.rename(saved, case.data)

    kills = case.chance.choice((1, 1, 2))
    for _ in range(kills):
        name, number = choose(case.chance, found)
        case.note(f"instard is killed at {name} number {number}")
        daemon.start(["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}"])
        daemon.await_migration()
        daemon.stop(signal.SIGKILL)
        case.await_end()
        case.require_whole("after the death of instard", copy=True)
    daemon.start()
    if not daemon.await_migration():
        case.problem("hangs", f"instard did not migrate the store within {case.bench.limit:.0f} s")
    daemon.stop()
    case.conclude(finish=False)


class Daemon:
    """One instard after another on the data folder of a case."""

    def __init__(self, case):
        self.case = case
        self.process = None
        plugins = os.path.join(case.folder, "plugins")
        os.mkdir(plugins, 0o755)
        shutil.copy(case.programs.plugin, plugins + "/Torture.so")
        os.chmod(plugins + "/Torture.so", 0o644)
        self.configuration = os.path.join(case.folder, "instard.yml")
        cutover = ", cutover: exchange" if case.programs.more else ""
        with open(self.configuration, "w") as stream:
            stream.write(
                f"state: {case.state}\nplugins: [{plugins}]\ndebounce: 50ms\nretry: {{first: 200ms, most: 1s}}\n"
                f"watches:\n  - {{folder: {case.data}, pattern: \"*.store\"{cutover}}}\n")

    def start(self, strace=None, log=None):
        command = [os.path.join(self.case.bench.build, DAEMON), "--config", self.configuration, "--foreground"]
        if strace is not None:
            command = [
                "/usr/bin/strace", "-f", "-q", "-q", "-b", "execve", "-o", log or "/dev/null", *strace, *command]
        self.process = self.case.programs.start_command(command)

    def await_migration(self, count=1):
        """Waits until the ledger has the runs of so many stores and no run is open, or instard has ended.

        Returns whether it has.
        """
        while self.process.poll() is None and self.process.clock.read() < self.case.bench.limit:
            runs, _ = self.case.ledger()
            migrated = {run.get("store") for run in runs if run.get("result") == "migrated"}
            if len(migrated) >= count and not self.case.open_phases():
                return True
            time.sleep(0.01)
        return False

    def daemons(self):
        return [pid for pid in below(self.process.pid) if program_of(pid) == DAEMON]

    def listens(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(os.path.join(self.case.state, "instard.sock")) == 0

    def stop(self, number=signal.SIGTERM):
        """Ends instard, and waits until it has ended."""
        end = 20 + self.process.clock.read()
        # Where nothing was left to migrate, strace may not have started instard yet. Before instard listens, it may not
        # handle SIGTERM, and the socket of a killed instard is still there.
        while self.process.poll() is None and self.process.clock.read() < end:
            if self.daemons() and (number == signal.SIGKILL or self.listens()):
                break
            time.sleep(0.01)
        found = self.daemons()
        for pid in found:
            signal_process(pid, number)
        answer = self.case.programs.finish(self.process, end)
        if answer.hung:
            self.case.problem("hangs", f"instard did not end within 20 s of signal {number:d}; left: {answer.left}")


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return None
