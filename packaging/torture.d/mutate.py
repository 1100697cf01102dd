"""Mutations: with one protection removed on purpose the torture must find a loss. Proves that it would see one.

A mutation is a patch in `mutations/`, built on an overlay of the repository so that neither sources nor build folder
change; or, for a lost fsync, a rule of strace. A control is a patch that must *not* be caught, because another
protection holds.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field

import mounts
from case import HERE

ROOT = os.path.dirname(os.path.dirname(HERE))


@dataclass
class Mutation:
    what: str
    classes: tuple
    focus: dict = field(default_factory=dict)
    patch: bool = True
    caught: bool = True
    cases: int = 120


MUTATIONS = {
    "fsync": Mutation(
        "one fsync of the keeper or of SQLite is left out", ("power",), {"drop": True}, patch=False, cases=200),
    "renames": Mutation(
        "the backup gets its name after the store is written, not before", ("death",), {"late": True}),
    "lock": Mutation(
        "nobody keeps apps from writing a store with a rollback journal while the worker works", ("writers",),
        {"journal": "delete", "apps": True}),
    "data-version": Mutation(
        "apps may write a WAL store while the worker works, and nobody compares data_version before the cutover",
        ("writers",), {"journal": "wal", "apps": True}),
    "optimistic": Mutation(
        "apps may write a WAL store while the worker works; the comparison of data_version still protects it",
        ("writers",), {"journal": "wal", "apps": True}, caught=False, cases=30),
    "copy-version": Mutation(
        "a run with 'whenBusy: migrate' does not compare data_version with that of its copy", ("writers",),
        {"policy": "migrate", "journal": "delete", "apps": True}),
    "inode": Mutation(
        "nobody compares the file at the store's path with the one that was locked", ("writers",),
        {"swap": "replace", "journal": "delete"}),
    "exchange-lease": Mutation(
        "nobody reads the lease of the file that left after an exchange", ("exchange",), {"journal": "delete"}),
    "exchange-lock": Mutation(
        "an exchange does not lock the file that leaves, or comes, against SQLite", ("exchange",),
        {"journal": "delete"}),
    "index-fingerprint": Mutation(
        "nobody compares the indexes of a clone with their tables", ("plugins",), {"harm": "decoy"}),
}
# What counts as caught: a store or a write is gone, or Instar said something untrue of a store.
COUNTED = ("lost", "untrue")


def run(names, options):
    """Runs each mutation; returns whether each was caught, or a control was not."""
    failed = False
    for name in names:
        mutation = MUTATIONS[name]
        found = in_child(lambda: torture(name, mutation, options))
        caught = any(found.get(kind) for kind in COUNTED)
        failed |= caught != mutation.caught
        print(json.dumps({
            "mutation": name, "what": mutation.what, "caught": caught, "expected": mutation.caught, **found}),
            flush=True)
    return failed


def in_child(body):
    """Returns what `body` returns in a child process, which may change its mounts."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            answer = body()
        except Exception as error:  # the parent reports it
            answer = {"error": str(error)}
        with os.fdopen(writer, "w") as stream:
            json.dump(answer, stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = json.load(stream)
    os.waitpid(pid, 0)
    if "error" in answer:
        sys.exit(f"packaging/torture: {answer['error']}")
    return answer


def torture(name, mutation, options):
    if mutation.patch:
        build(name, options)
    done = subprocess.run(
        ["/usr/bin/python3", os.path.join(ROOT, "packaging", "torture"), "--json", "--until-caught",
         "--cases", str(options.cases or mutation.cases), "--focus", json.dumps(mutation.focus),
         *(["--seed", str(options.seed)] if options.seed is not None else []),
         *(["--plugin", options.plugin] if options.plugin else []), "--build", options.build,
         *(word for class_name in mutation.classes for word in ("--class", class_name))],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    lines = done.stdout.splitlines()
    if not lines:
        raise RuntimeError(f"the torture of mutation '{name}' ended: {done.stderr[-1000:]}")
    totals = json.loads(lines[-1])
    found = {key: totals[key] for key in ("cases", "seed", *COUNTED)}
    for line in lines[:-1]:
        problems = [text for kind, text in json.loads(line)["problems"] if kind in COUNTED]
        if problems:
            found["example"] = problems[0][:300]
            found["case"] = json.loads(line)["case"]
            break
    return found


def build(name, options):
    """Builds the mutated keeper on an overlay of the repository."""
    mounts.leave_namespace()
    overlay = os.path.join(options.work, "overlay")
    os.makedirs(overlay, exist_ok=True)
    mounts.run("mount", "-t", "tmpfs", "tmpfs", overlay)
    for folder in ("upper", "work"):
        os.mkdir(os.path.join(overlay, folder))
    mounts.run(
        "mount", "-t", "overlay", "overlay", "-o",
        f"lowerdir={ROOT},upperdir={overlay}/upper,workdir={overlay}/work", ROOT)
    os.chdir(ROOT)
    mounts.run("patch", "-p1", "-s", "-i", os.path.join(HERE, "mutations", f"{name}.patch"))
    done = subprocess.run(
        ["swift", "build", "--product", "instar-keeper"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        check=False)
    if done.returncode != 0:
        raise RuntimeError(f"mutation '{name}' does not compile:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
