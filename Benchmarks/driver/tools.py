"""Builds and finds what the benchmarks run: our programs and plugins, the limit in C, and the peers."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

from driver.measurement import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BENCHMARKS = os.path.join(ROOT, "Benchmarks")
PYTHON_PEERS = ("alembic==1.20.1", "sqlalchemy==2.1.9", "django==5.2.19", "sqlite-utils==4.2.1")


def run(command, **options):
    """Runs a command and returns its standard output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Failure(f"'{os.path.basename(command[0])}' exited with {done.returncode}: {' '.join(reason[-3:])}")
    return done.stdout


def seconds_of(command):
    """Runs a program that measures itself and prints a JSON line."""
    return json.loads(run(command))["s"]


class Tools:
    """Everything is built on first use, and only once for the same sources."""

    def __init__(self, cache, note):
        self.cache = cache
        self.note = note
        self._release = os.environ.get("INSTAR_RELEASE_BUILD")
        self._paths = {}
        os.makedirs(cache, exist_ok=True)

    def _once(self, name, sources, build):
        """Returns the path of `name` in the cache; calls `build` with it if it is missing or of other sources."""
        if name in self._paths:
            return self._paths[name]
        digest = hashlib.sha256()
        for source in sources:
            with open(source, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
        stem, extension = os.path.splitext(name)
        path = os.path.join(self.cache, f"{stem}-{digest.hexdigest()[:12]}{extension}")
        if not os.path.exists(path):
            self.note(f"building {name}")
            build(path)
        self._paths[name] = path
        return path

    # MARK: The limit

    def limit(self, name):
        folder = os.path.join(BENCHMARKS, "limit")
        sources = [os.path.join(folder, file) for file in (f"{name}.c", "limit.c")]
        return self._once(name, [*sources, os.path.join(folder, "limit.h")], lambda path: run(
            ["gcc", "-O2", "-Wall", "-Wextra", "-Wno-format-truncation", *sources, "-lsqlite3", "-lpthread",
             "-o", path]))

    # MARK: Ours

    @property
    def release(self):
        """The folder of the release build."""
        if not self._release:
            self.note("building the release build")
            built = subprocess.run(
                [os.path.join(ROOT, "packaging/release-build")], stdout=subprocess.PIPE, text=True, check=False)
            if built.returncode != 0:
                raise Failure("the release build failed")
            self._release = built.stdout.strip()
        return os.path.realpath(self._release)

    def program(self, name):
        return os.path.join(self.release, name)

    def plugin(self, format, stage):
        folder = os.path.join(BENCHMARKS, "plugins")
        names = ["NotesV1", "NotesV2", stage] if stage in ("Objects", "Fetch") else ["NotesV1", stage]
        sources = [os.path.join(folder, format, f"{name}.swift") for name in names]
        if stage in ("Objects", "Fetch", "Transform", "Bridge"):
            sources.append(os.path.join(folder, "ReversedWords.swift"))
        return self._once(
            f"{format}-{stage}.so", [*sources, self.program("libInstar.so")],
            lambda path: run([self.program("instarctl"), "plugin", "build", *sources, "-o", path]))

    def app(self):
        """The app of the SDK's rows, compiled with the flags of 'instarctl plugin build'."""
        sources = [os.path.join(BENCHMARKS, name) for name in ("plugins/coredata/NotesV1.swift", "app/App.swift")]
        release = self.release
        return self._once("app", [*sources, self.program("libInstar.so")], lambda path: run(
            ["swiftc", "-parse-as-library", "-module-name", "App", "-swift-version", "5", "-O", "-wmo",
             "-I", os.path.join(release, "Modules"),
             "-load-plugin-executable", f"{self.program('InstarMacros-tool')}#InstarMacros",
             "-L", release, "-lInstar", "-Xlinker", "-rpath", "-Xlinker", release, "-o", path, *sources]))

    # MARK: Peers

    def grdb(self):
        package = os.path.join(BENCHMARKS, "grdb")
        sources = [os.path.join(package, name) for name in ("Package.swift", "Sources/grdb-peer/Peer.swift")]

        def build(path):
            scratch = os.path.join(self.cache, "grdb-build")
            command = ["swift", "build", "-c", "release", "--package-path", package, "--scratch-path", scratch]
            run(command)
            shutil.copy(os.path.join(run([*command, "--show-bin-path"]).strip(), "grdb-peer"), path)
        return self._once("grdb-peer", sources, build)

    def python_peer(self, name):
        """Returns the start of a command that runs a peer in Python."""
        folder = os.path.join(self.cache, "python-peers")
        complete = os.path.join(folder, "complete")
        wanted = " ".join(PYTHON_PEERS)
        if not os.path.exists(complete) or open(complete, encoding="utf-8").read() != wanted:
            self.note("installing the peers in Python")
            run([sys.executable, "-m", "venv", "--clear", folder])
            run([os.path.join(folder, "bin/pip"), "install", "--quiet", *PYTHON_PEERS])
            with open(complete, "w", encoding="utf-8") as file:
                file.write(wanted)
        script = os.path.join(BENCHMARKS, "peers", f"{name.replace('-', '_')}_peer.py")
        return [os.path.join(folder, "bin/python"), script]
