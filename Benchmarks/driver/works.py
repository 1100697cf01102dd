"""Does one work once, and measures it.

Ours is measured from outside, with the start of every process. The limit and the peers measure themselves, without
their start. Where that makes a difference, it is in their favour.
"""

import collections
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

from driver import large_plan
from driver.measurement import Failure, Sample
from driver.tools import run, seconds_of

WORKER_STARTS = 10
# A daemon is quiet when it has used no processor time for so long.
QUIET_SECONDS = 10
IDLE_SECONDS = 30
START_TIME_LIMIT = 3600
STORES_PER_FOLDER = 100


class Works:
    def __init__(self, tools, stores):
        self.tools = tools
        self.stores = stores
        self._daemon = {}

    def prepare(self, work):
        """Builds and creates what a work needs, so that no measurement waits for it."""
        if work.what.startswith("fleet") or work.what == "probe":
            self.stores.fleet_template(work.size, work.format)
        elif work.by not in ("app", "worker", "daemon", "builder") and work.what not in ("insert", "fetch"):
            self.stores.template(work.size, work.format)
        if work.by in ("instar", "builder"):
            self.tools.limit("measure")
        if work.by in ("instar", "worker", "daemon") and work.what != "probe":
            self.tools.plugin(work.format, stage_of(work.what))
        if work.by == "limit":
            self.tools.limit("fleet" if work.what.startswith("fleet") else "store")
        elif work.by == "app":
            self.tools.app()
        elif work.by == "grdb":
            self.tools.grdb()
        elif work.by in ("alembic", "django", "sqlite-utils"):
            self.tools.python_peer(work.by)

    def measure(self, work):
        try:
            if work.by == "instar":
                return self._instar(work)
            if work.by == "worker":
                return self._worker_start()
            if work.by == "builder":
                return self._plugin_build()
            if work.by == "daemon":
                return self._idle_daemon(work)
            return Sample(self._others(work))
        finally:
            self.stores.fresh_folder()

    # MARK: Ours

    def _instar(self, work):
        if work.what == "probe":
            paths = self.stores.fleet(self.stores.fleet_template(work.size, work.format))
            return self._run(["probe", "--no-rows", "--json", *paths], lambda report: report["version"] == "1.0.0")
        if work.what == "fleet":
            paths = self.stores.fleet(self.stores.fresh_fleet(work.size, work.format))
        else:
            paths = [self.stores.fresh(work.size, work.format)]
        state = os.path.join(self.stores.work, "state")
        command = [
            "migrate", "--json", "--state-dir", state, "--plugin", self.tools.plugin(work.format, stage_of(work.what)),
            *paths]
        if work.what.endswith("beside a writer"):
            return self._longest_wait(command, paths[0], work.format)
        opener = None
        if work.what.endswith("while open"):
            opener = sqlite3.connect(paths[0])
            opener.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        try:
            return self._run(command, is_migrated)
        finally:
            if opener:
                opener.close()

    def _longest_wait(self, command, path, format):
        """Migrates a store while an app writes to it, and returns the longest time that a write took, in milliseconds."""
        with Writer(path, format) as writer:
            self._run([*command, "--when-busy", "migrate"], is_migrated)
        return Sample(1000 * writer.longest_wait())

    def _run(self, arguments, is_good):
        """Runs instarctl, and checks each report."""
        output, errors = (os.path.join(self.stores.work, name) for name in ("output", "errors"))
        command = [self.tools.limit("measure"), self.tools.program("instarctl"), *arguments]
        with open(output, "w", encoding="utf-8") as file, open(errors, "w", encoding="utf-8") as error_file:
            subprocess.run(command, stdout=file, stderr=error_file, check=True)
        with open(errors, encoding="utf-8") as file:
            measured = json.loads(file.read().splitlines()[-1])
        with open(output, encoding="utf-8") as file:
            reports = [json.loads(line) for line in file if line.strip()]
        bad = [report for report in reports if not is_good(report)]
        if measured["status"] != 0 or bad or not reports:
            cause = bad[0].get("error", {}).get("cause", "") if bad else ""
            raise Failure(f"instarctl exited with {measured['status']}: {cause}")
        return Sample(measured["s"], measured["rss_mb"])

    # MARK: The limit and the peers

    def _others(self, work):
        if work.by == "limit":
            return self._limit(work)
        if work.what in ("insert", "fetch", "inverse"):
            return self._models(work)
        path = (self.stores.fresh_fleet if work.what == "fleet" else self.stores.fresh)(work.size, work.format)
        command = [self.tools.grdb()] if work.by == "grdb" else self.tools.python_peer(work.by)
        return seconds_of([*command, work.what, path])

    def _limit(self, work):
        format = f"format={work.format}"
        if work.what.startswith("fleet "):
            operation = work.what.removeprefix("fleet ")
            if operation == "shadow_batch":
                folder = self.stores.fresh_fleet(work.size, work.format)
            else:
                folder = self.stores.fleet_template(work.size, work.format)
            workers = os.cpu_count() or 1
            batch = max(1, min(256, work.size // workers))
            return seconds_of(
                [self.tools.limit("fleet"), folder, operation, format, f"workers={workers}", f"batch={batch}"])
        operation = work.what.partition(" ")[0]
        target = os.path.join(self.stores.fresh_folder(), "copy.db")
        path = self.stores.template(work.size, work.format)
        if work.what == "backup":
            # Into a store that exists, as a write-back does.
            target = self.stores.fresh(work.size, work.format)
        elif operation not in ("backup", "copy", "check", "integrity"):
            path = self.stores.fresh(work.size, work.format)
        return seconds_of([self.tools.limit("store"), path, operation, format, f"to={target}"])

    def _models(self, work):
        program = self.tools.app() if work.by == "app" else self.tools.grdb()
        path = os.path.join(self.stores.fresh_folder(), "models.db")
        if work.what == "fetch":
            seconds_of([program, "insert", path, str(work.size)])
            os.sync()
        return seconds_of([program, work.what, path, str(work.size)])

    # MARK: A worker's start

    def _worker_start(self):
        """Does what a keeper does, and waits for the message that the plugin is loaded."""
        plugin = self.tools.plugin("plain", "AddColumn")
        command = [
            self.tools.program("instar-worker"), "--library", self.tools.program("libInstar.so"), "--plugin", plugin,
            "--read", self.tools.release, "--read", swift_runtime(self.tools.program("instarctl")),
            "--allow-unconfined"]
        starts = sorted(self._start_worker(command) for _ in range(WORKER_STARTS))
        return Sample(1000 * starts[len(starts) // 2])

    @staticmethod
    def _start_worker(command):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            start = time.perf_counter()
            pid = os.posix_spawn(
                command[0], command, {"PATH": "/usr/bin:/bin"},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)], setpgroup=0)
            try:
                theirs.close()
                ours.settimeout(30)
                line = b""
                while not line.endswith(b"\n"):
                    received = ours.recv(65536)
                    if not received:
                        raise Failure(f"the worker closed its channel after: {line.decode(errors='replace')}")
                    line += received
                seconds = time.perf_counter() - start
            finally:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if "ready" not in json.loads(line):
            raise Failure(f"the worker did not report ready: {line.decode(errors='replace').strip()}")
        return seconds

    # MARK: Building a plugin

    def _plugin_build(self):
        """Uses one processor almost all the time, so the value is close to the processor time."""
        folder = self.stores.fresh_folder()
        source, plugin = (os.path.join(folder, name) for name in ("LargePlan.swift", "LargePlan.so"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(large_plan.source())
        return self._run(
            ["plugin", "build", "--json", source, "-o", plugin],
            lambda report: report["planNames"] == ["LargePlan"])

    # MARK: A quiet daemon

    def _idle_daemon(self, work):
        """Memory and processor time come from one daemon, so the second of the two works is measured already."""
        if not self._daemon.get(work.size):
            self._daemon[work.size] = self._watch(work.size)
        return Sample(self._daemon[work.size].pop(work.what))

    def _watch(self, count):
        folder = self.stores.fresh_folder()
        self._make_current_stores(folder, count)
        os.makedirs(os.path.join(folder, "plugins"), mode=0o755)
        shutil.copy(self.tools.plugin("plain", "AddColumn"), os.path.join(folder, "plugins", "AddColumn.so"))
        configuration = os.path.join(folder, "instard.yml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(
                f"state: {folder}/state\nplugins: [{folder}/plugins]\n"
                f"watches:\n  - folder: {folder}/stores\n    pattern: '*.db'\n    recursive: true\n")
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(
                [self.tools.program("instard"), "--config", configuration, "--foreground"], stdout=log, stderr=log)
        try:
            self._wait_until_quiet(daemon, count)
            before = processor_seconds(daemon.pid)
            time.sleep(IDLE_SECONDS)
            used = processor_seconds(daemon.pid) - before
            # The kernel counts ticks of 10 ms. Three of them in 30 s are 0.1 percent, not a rounding error more.
            return {"memory": memory_mb(daemon.pid), "processor": round(100 * used / IDLE_SECONDS, 3)}
        finally:
            daemon.terminate()
            daemon.wait()

    def _make_current_stores(self, folder, count):
        """Copies one store that is at the last version of its plan."""
        small = os.path.join(folder, "small.db")
        run([self.tools.limit("gen"), small, "0"])
        self._run(
            ["migrate", "--json", "--state-dir", f"{folder}/ledger", "--plugin",
             self.tools.plugin("plain", "AddColumn"), small], is_migrated)
        for number in range(count):
            target = os.path.join(folder, "stores", f"d{number // STORES_PER_FOLDER:04}", f"s{number:06}.db")
            if number % STORES_PER_FOLDER == 0:
                os.makedirs(os.path.dirname(target), mode=0o755)
            shutil.copyfile(small, target)

    @staticmethod
    def _wait_until_quiet(daemon, count):
        """The first scan probes every store."""
        deadline = time.monotonic() + START_TIME_LIMIT
        history = collections.deque(maxlen=QUIET_SECONDS)
        while True:
            if daemon.poll() is not None:
                raise Failure(f"instard exited with {daemon.returncode}")
            if time.monotonic() > deadline:
                raise Failure(f"instard was still busy with {count} stores after {START_TIME_LIMIT} s")
            history.append(processor_seconds(daemon.pid))
            if len(history) == QUIET_SECONDS and history[-1] - history[0] < 0.05:
                return
            time.sleep(1)


class Writer:
    """An app that changes one row of a store again and again."""

    PAUSE = 0.05
    TIMEOUT = 60

    def __init__(self, path, format):
        self._path = path
        self._statement = (
            "UPDATE ZNOTE SET ZCREATED = ZCREATED + 1 WHERE Z_PK = 1" if format == "coredata"
            else "UPDATE note SET created = created + 1 WHERE id = 1")
        self._stopped = threading.Event()
        self._waits = []
        self._failure = None
        self._thread = threading.Thread(target=self._write)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def longest_wait(self):
        if self._failure:
            raise Failure(f"the app beside the run could not write: {self._failure}")
        return max(self._waits)

    def _write(self):
        try:
            app = sqlite3.connect(self._path, timeout=self.TIMEOUT, isolation_level=None)
            while not self._stopped.is_set():
                start = time.perf_counter()
                app.execute(self._statement)
                self._waits.append(time.perf_counter() - start)
                time.sleep(self.PAUSE)
            app.close()
        except sqlite3.Error as error:
            self._failure = error


def is_migrated(report):
    return report["result"] == "migrated"


def stage_of(what):
    if what in ("fleet", "start", "memory", "processor"):
        return "AddColumn"
    return what.removesuffix(" while open").removesuffix(" beside a writer")


def swift_runtime(program):
    """The folder of the Swift runtime that a program uses."""
    match = re.search(r"=> (\S+)/libswiftCore\.so", run(["ldd", program]))
    if not match:
        raise Failure(f"cannot find the Swift runtime of '{program}'")
    return match.group(1)


def processes(pid):
    """A process and everything below it."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="utf-8") as file:
                    found += map(int, file.read().split())
        except FileNotFoundError:
            continue  # It has ended meanwhile.
    return found


def processor_seconds(pid):
    """The processor time of a process, of children that it has waited for, and of children that still run."""
    ticks = 0
    for process in processes(pid):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(") ")[2].split()
        except FileNotFoundError:
            continue
        ticks += sum(map(int, fields[11:15] if process == pid else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    kilobytes = 0
    for process in processes(pid):
        try:
            with open(f"/proc/{process}/status", encoding="utf-8") as file:
                kilobytes += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        except FileNotFoundError:
            continue
    return kilobytes / 1024
