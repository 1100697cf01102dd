"""Containers: an app that migrates its own store when it opens it is killed at a system call, and opens it again."""

import os
import shutil
import subprocess

from case import HERE, models
from programs import calls, choose


def perform(case):
    case.make(rows=24, page_size=4096, format="coredata")
    case.backups = os.path.join(case.state, "backups")
    app = program(case)
    saved = case.folder + "/saved"
    shutil.copytree(case.data, saved, symlinks=True)
    log = case.folder + "/trace"
    answer = start(case, app, ["-e", "signal=none"], log)
    if answer.status != 0:
        case.problem("untrue", f"the app cannot open its store: {answer.messages[-300:]}")
    found = calls(log)
    shutil.rmtree(case.data)
    os.rename(saved, case.data)
    for _ in range(case.chance.choice((1, 1, 2))):
        # The later half: an app starts with hundreds of calls that have nothing to do with its store.
        name, number = choose(case.chance, found[len(found) // 2:])
        case.note(f"the app is killed at {name} number {number}")
        answer = start(case, app, ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}"])
        case.check_hang(answer, "the app")
        case.require_whole("after the death of the app", copy=True)
    if case.chance.random() < 0.5:
        answer = start(case, app)
        case.check_hang(answer, "the app")
        if answer.status != 0:
            case.problem("untrue", f"the app cannot open its store again: {answer.messages[-300:]}")
        elif case.require_whole("after the app", copy=True) == "old":
            case.problem("untrue", "the app has opened its store, which is at its old version")
    case.conclude(finish=False)


def start(case, app, strace=None, log=None):
    command = [app, case.store]
    if strace is not None:
        command = ["/usr/bin/strace", "-f", "-q", "-q", "-o", log or "/dev/null", *strace, *command]
    process = case.programs.start_command(command, {"INSTAR_STATE_DIR": case.state})
    return case.programs.finish(process, case.bench.limit)


def program(case):
    """The app, built once for a session."""
    path = os.path.join(case.bench.work, "container")
    if not os.path.exists(path):
        made, build = f"{path}.{os.getpid()}", case.bench.build
        source = os.path.join(case.folder, "Models.swift")
        with open(source, "w") as stream:
            stream.write(models())
        # The flags of 'instarctl plugin build', for a program.
        subprocess.run(
            ["swiftc", "-parse-as-library", "-module-name", "Container", "-swift-version", "5", "-O", "-wmo",
             "-I", f"{build}/Modules", "-load-plugin-executable", f"{build}/InstarMacros-tool#InstarMacros",
             "-L", build, "-lInstar", "-Xlinker", "-rpath", "-Xlinker", build, "-o", made,
             source, os.path.join(HERE, "Container.swift")],
            check=True, capture_output=True, stdin=subprocess.DEVNULL)
        os.rename(made, path)
    return path
