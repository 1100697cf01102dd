"""Runs a program in namespaces of its own: when it ends, in whatever way, the kernel ends all its processes and removes its
network."""

import ctypes
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PREFIX = "instar-rollout."
KEPT = "kept"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def remove_leftovers():
    """Removes the folders of earlier calls that were killed. Those that are still used are locked."""
    for folder in glob.glob(f"{tempfile.gettempdir()}/{PREFIX}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A younger one may not be locked yet.
            if not os.path.exists(f"{folder}/{KEPT}") and time.time() - os.stat(folder).st_mtime > 60:
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def run(command):
    """Runs a command, with a folder for its files as the last argument. Returns its exit status."""
    remove_leftovers()
    folder = tempfile.mkdtemp(prefix=PREFIX)
    os.chmod(folder, 0o755)
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    child = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *command, folder],
        preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    try:
        return child.wait()
    finally:
        child.kill()
        child.wait()
        if not os.path.exists(f"{folder}/{KEPT}"):
            shutil.rmtree(folder, ignore_errors=True)


def run_all(commands, jobs):
    """Runs named commands, some at a time, and prints the output of each when it has ended. Returns the names of the
    failed ones."""
    waiting, running, failed = list(commands), {}, []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, output = waiting.pop(0), tempfile.TemporaryFile()
                child = subprocess.Popen(
                    commands[name], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
                running[child.pid] = name, child, output
            # Does not take the child's status from its object.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            name, child, output = running.pop(ended.si_pid)
            output.seek(0)
            print(output.read().decode(errors="replace"), end="", flush=True)
            output.close()
            if child.wait() != 0:
                failed.append(name)
    finally:
        for _, child, _ in running.values():
            child.terminate()
        for _, child, _ in running.values():
            child.wait()
    return failed


def keep(folder):
    """Has the folder stay when the program ends."""
    open(f"{folder}/{KEPT}", "w").close()


def enter():
    """Hides the network namespaces of the machine: those that are made from now on are named in this process only."""
    os.makedirs("/run/netns", exist_ok=True)
    # faketime names files in /dev/shm by process, and two calls have the same numbers of processes.
    for folder in ("/run/netns", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
