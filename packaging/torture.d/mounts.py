"""File systems that belong to one case: mounted in a namespace of its own, which the kernel clears away with it."""

import ctypes
import fcntl
import os
import struct
import subprocess
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_NAMESPACE, PRIVATE = 0x20000, 0x4000 | 0x40000  # CLONE_NEWNS; MS_REC | MS_PRIVATE
GOING_DOWN, WITHOUT_LOG = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN; ..._NOLOGFLUSH
SIZES = {"ext4": "24M", "xfs": "320M"}
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0"], "xfs": ["mkfs.xfs", "-q", "-f"]}


def require_root():
    if os.geteuid() != 0:
        raise PermissionError("this class mounts file systems: run it as root")


def leave_namespace():
    """Gives this process a mount namespace of its own."""
    require_root()
    if LIBC.unshare(NEW_NAMESPACE) != 0 or LIBC.mount(None, b"/", None, PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


class Mount:
    """A file system on a folder of the case: an image behind a loop device, or memory."""

    def __init__(self, case, kind, size=None):
        self.kind = kind
        self.folder = os.path.join(case.folder, "disk")
        os.makedirs(self.folder, exist_ok=True)
        self.image = None
        if not case.mounts:
            leave_namespace()
        if kind == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.folder)
        else:
            self.image = os.path.join(case.folder, "disk.img")
            run("cp", "--sparse=always", template(case.bench.work, kind, size or SIZES[kind]), self.image)
            self.mount()
        case.mounts.append(self)
        case.place(os.path.join(self.folder, "data"))
        os.mkdir(case.data, 0o755)

    def mount(self):
        # All images of a kind are copies of one.
        run("mount", "-o", "loop,nouuid" if self.kind == "xfs" else "loop", self.image, self.folder)

    def free(self):
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize

    def sync(self):
        run("sync", "-f", self.folder)

    def cut_power(self):
        """What the file system has not written yet is lost."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, GOING_DOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(descriptor)

    def mount_again(self):
        self.remove()
        self.mount()

    def remove(self):
        for _ in range(200):
            if subprocess.run(["umount", self.folder], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.02)
        run("umount", "-l", self.folder)


def template(work, kind, size):
    """An empty file system, made once."""
    path = os.path.join(work, f"empty.{size}.{kind}")
    if not os.path.exists(path):
        made = f"{path}.{os.getpid()}"
        with open(made, "wb") as stream:
            stream.truncate(0)
        run("truncate", "-s", size, made)
        run(*MAKE[kind], made)
        os.rename(made, path)
    return path
