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


def enter():
    """Hides the network namespaces of the machine: those that are made from now on are named in this process only."""
    os.makedirs("/run/netns", exist_ok=True)
    # faketime names files in /dev/shm by process, and two calls have the same numbers of processes.
    for folder in ("/run/netns", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
