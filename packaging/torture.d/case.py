"""One case of torture: a folder with a store, what is done to it, and what is found afterwards.

A case collects problems, each of one kind:

  lost       the store is neither whole at its old version nor whole at its new one, an acknowledged write is missing,
             or a backup that was promised is missing or damaged
  untrue     a report, the ledger or an exit status says something else than a fresh connection finds
  leftovers  files that nobody removes, after one recovery
  crashes    a keeper or a supervisor ended by a signal that nobody sent
  hangs      a program took longer than its limit (see clock.py), or outlived everything that could need it
"""

import ctypes
import json
import os
import random
import re
import shutil
import signal
from dataclasses import dataclass, field

import history
import judge
import stores
from clock import STEP, Clock
from programs import KEEPER, WORKER, Programs, await_any, lines

KINDS = ("lost", "leftovers", "untrue", "hangs", "crashes")
SIDES = ("-wal", "-shm", "-journal")
HERE = os.path.dirname(os.path.realpath(__file__))
# The classes in which some stores have a plan without code, and how many.
LIGHT_CLASSES, LIGHT_SHARE = ("death", "faults", "power", "stores", "writers", "exchange", "batch"), 0.25
# How many of these stores are small.
SMALL_SHARE = 0.6
# The classes in which the stages of some runs are of other kinds, with the same results, and how many.
KIND_CLASSES, KIND_SHARE = ("death", "faults", "power", "disk", "writers", "exchange"), 0.2
# The classes in which some runs are rehearsals, and how many.
REHEARSAL_CLASSES, REHEARSAL_SHARE = ("death", "faults", "kinds"), 0.08
# The classes in which some stores have many free pages, which a run gives back, and how many.
FREE_CLASSES, FREE_SHARE = ("death", "daemon", "container", "faults", "disk", "power", "writers", "exchange"), 0.2
# How many of Core Data's stores keep a history, in every class. All that SwiftData makes do.
HISTORY_SHARE = 0.5
# What a report says of free pages.
GIVEN_BACK = re.compile(r"pages were free after the stages, and (?:all but (\d+) )?were given back")
# What a report says where an app used the file that left in an exchange.
FORMER_FILE = "the store's old file"
STATUS = {"migrated": 0, "rehearsed": 0, "current": 0, "failed": 1, "refused": 3, "busy": 4}


@dataclass
class Bench:
    """What all cases of one call share."""

    build: str
    plugin: str
    work: str
    # The plugin whose plans have no code; empty where no case is to use it.
    light_plugin: str = ""
    # The same without values in files, for small stores: these are changed in a transaction.
    small_plugin: str = ""
    # The plugin whose stages are a bridge and a transform; empty where no case is to use it.
    kinds_plugin: str = ""
    # The plugin whose stage is SQL statements, for ordinary tables; empty where no case is to use it.
    statements_plugin: str = ""
    limit: float = 60
    # What a mutation needs: values of the recipe, and choices of a class.
    focus: dict = field(default_factory=dict)


class Case:
    """One case: its folder, its chances, and what was found."""

    def __init__(self, bench, name, seed, folder):
        self.bench, self.name, self.seed, self.folder = bench, name, seed, folder
        self.chance = random.Random(f"{name}:{seed}")
        self.problems, self.notes = [], []
        self.programs = Programs(bench.build, folder, bench.plugin)
        self.data = os.path.join(folder, "data")
        os.makedirs(self.data, mode=0o755)
        self.recipe = self.store = None
        self.mounts = []
        # Whether SQLite itself may have failed to remove a journal whose header is cleared.
        self.journal_may_stay = False
        # Whether a plugin writes over bytes of its clone: values that fit the new version may be any.
        self.values_may_differ = False
        # Whether an app may have used the file that left in an exchange.
        self.former_file_is_used = False
        # Whether code of a plan must run.
        self.needs_code = False
        # What was last read of the store itself while it was whole.
        self.found = {}
        self.place(self.data)

    def place(self, data):
        """Decides where store and state folder are."""
        self.data = data
        self.store = os.path.join(data, "a.store")
        self.state = os.path.join(data, "state")
        self.backups = os.path.join(data, ".instar")

    # Results

    def problem(self, kind, text):
        self.problems.append((kind, text))

    def note(self, text):
        self.notes.append(text)

    # The store

    def make(self, **fixed):
        fixed.update((name, value) for name, value in self.bench.focus.items() if hasattr(stores.Recipe, name))
        self.recipe = stores.Recipe.draw(self.chance, **fixed)
        if self.is_light():
            self.recipe.lighten(self.is_small())
            # A mutation has one plugin.
            if not self.bench.focus:
                self.programs.plugin = self.bench.small_plugin if self.recipe.small else self.bench.light_plugin
        else:
            self.free_pages()
            if self.has_other_kinds():
                self.use_other_kind()
        self.keep_history()
        if self.is_rehearsal():
            self.programs.verb = "rehearse"
        stores.make(self.store, self.recipe)
        self.old, self.new = stores.contents(self.recipe)
        self.note(
            f"{self.recipe.format}, journal {self.recipe.journal}, {self.recipe.start}, {self.recipe.rows} rows"
            + (", external values" if self.recipe.external else "") + (", no code" if self.recipe.light else "")
            + (", small" if self.recipe.small else "")
            + (", stages of other kinds" if self.programs.plugin == self.bench.kinds_plugin else "")
            + (", a stage of statements" if self.runs_statements() else "")
            + (", free pages" if self.recipe.free else "")
            + (f", a history of {self.recipe.history} changes" if self.recipe.history is not None else "")
            + (f", auto_vacuum {self.recipe.auto_vacuum}" if self.recipe.auto_vacuum is not None else "")
            + (", rehearsal" if self.is_rehearsal() else ""))

    def mark(self, row, what):
        """Makes the store again, with a word in the name of a row that tells the stages of Kinds.swift and Statements.swift what to do."""
        self.recipe.marked, self.recipe.mark = row, what
        for name in os.listdir(self.data):
            path = os.path.join(self.data, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        stores.make(self.store, self.recipe)
        self.old, self.new = stores.contents(self.recipe)
        self.note(f"row {row} says '{what}'")

    def is_rehearsal(self):
        """Goes by the seed, as `is_light` does. A store with a hot journal is not rehearsed: Instar refuses that."""
        if self.bench.focus or self.name not in REHEARSAL_CLASSES or self.recipe.start == "hot":
            return False
        return random.Random(f"rehearsal:{self.seed}").random() < REHEARSAL_SHARE

    def is_light(self):
        """Goes by the seed alone, so that other chances stay as they are."""
        if self.bench.focus:
            return self.bench.focus.get("light", False)
        if not self.bench.light_plugin or self.name not in LIGHT_CLASSES or self.needs_code:
            return False
        return random.Random(f"light:{self.seed}").random() < LIGHT_SHARE

    def is_small(self):
        """Goes by the seed alone, too."""
        if self.bench.focus:
            return self.bench.focus.get("small", False)
        return random.Random(f"small:{self.seed}").random() < SMALL_SHARE

    def has_other_kinds(self):
        """Goes by the seed alone, too. A behaviour needs the closures of the other plans."""
        if not self.bench.kinds_plugin or self.bench.focus or self.name not in KIND_CLASSES or self.recipe.behaviour:
            return False
        return random.Random(f"kinds:{self.seed}").random() < KIND_SHARE

    def use_other_kind(self):
        """Statements cannot change values in files, as the other plans for Core Data's format do."""
        by_statements = self.recipe.format == "plain" and random.Random(f"statements:{self.seed}").random() < 0.5
        self.programs.plugin = self.bench.statements_plugin if by_statements else self.bench.kinds_plugin

    def runs_statements(self):
        return bool(self.bench.statements_plugin) and self.programs.plugin == self.bench.statements_plugin

    def free_pages(self):
        """Goes by the seed alone, too."""
        chance = random.Random(f"free:{self.seed}")
        if not self.bench.focus and self.name in FREE_CLASSES and chance.random() < FREE_SHARE:
            self.recipe.free, self.recipe.auto_vacuum = True, chance.choice((0, 0, 1, 2, 2))

    def keep_history(self):
        """Goes by the seed and the store's name alone."""
        chance = random.Random(f"history:{self.seed}:{os.path.basename(self.store)}")
        if self.bench.focus or self.recipe.format != "coredata" or chance.random() >= HISTORY_SHARE:
            return
        light = self.recipe.light and not self.recipe.small
        self.recipe.history = chance.choice(history.LARGE_LENGTHS if light else history.LENGTHS)
        if light:
            # With auto-vacuum SQLite writes pages of its own where another page becomes free, or is used.
            self.recipe.auto_vacuum = chance.choice((0, 2))

    def read(self, path):
        """What a fresh connection, in a process of its own, finds in a store."""
        answer = os.path.join(self.folder, "answer.json")
        pid = os.fork()
        if pid == 0:
            with open(answer, "w") as stream:
                json.dump(judge.answer(path), stream)
            os._exit(0)
        clock = Clock(lambda: [pid])
        while not await_any([pid], STEP):
            if clock.read() > self.bench.limit:
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            return {"error": f"the reader ended with status {status} after {clock.age:.0f} s"}
        with open(answer) as stream:
            return json.load(stream)

    def read_copy(self, path=None):
        """The same of a copy with its side files and external values; the store itself stays as it is."""
        path = path or self.store
        copy = os.path.join(self.folder, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        os.makedirs(copy)
        name = os.path.basename(path)
        target = os.path.join(copy, name)
        try:
            for side in ("", "-wal", "-journal"):
                if os.path.exists(path + side):
                    shutil.copyfile(path + side, target + side)
            external = stores.external_folder(path)
            if os.path.isdir(external):
                shutil.copytree(external, stores.external_folder(target))
        except OSError as error:
            return {"error": f"cannot copy: {error}"}
        return self.read(target)

    def identify(self, found, extra=None):
        """Returns "old" or "new"; None, with the reason, where the store is neither.

        `extra`: the rows that apps added (see `writers.Extra`).
        """
        if "error" in found:
            return None, found["error"]
        if found["integrity"] != "ok":
            return None, f"integrity_check: {found['integrity']}"
        if found["foreign"]:
            return None, f"{found['foreign']} foreign keys reference nothing"
        reasons = []
        for name, expected in (("old", self.old), ("new", self.new)):
            reason = mismatch(found, expected, extra, self.values_may_differ and name == "new")
            if reason is None:
                return name, None
            reasons.append(f"not {name}: {reason}")
        return None, "; ".join(reasons)

    def require_whole(self, when, copy=False, extra=None):
        """Requires that the store is whole, and returns which version it is."""
        if not os.path.exists(self.store):
            self.problem("lost", f"{when}: the store is gone")
            return None
        found = self.read_copy() if copy else self.read(self.store)
        version, reason = self.identify(found, extra)
        if version is None:
            self.problem("lost", f"{when}: {reason}")
        elif not copy:
            self.found = found
        self.free = found.get("free")
        return version

    # What was said

    def check_hang(self, answer, what):
        if answer.hung:
            self.problem("hangs", f"{what} took more than {answer.seconds:.0f} s; left: {answer.left}")

    def check_report(self, answer, version, what="the report"):
        """Compares what `instarctl migrate --json` said with the version that was found."""
        if answer.hung or version is None:
            return
        report = answer.report
        if report is None or "result" not in report:
            if answer.status == 0:
                self.problem("untrue", f"{what}: exit status 0 without a report: {answer.messages[-300:]}")
            elif answer.status > 0 and report is None:
                self.problem("untrue", f"{what}: exit status {answer.status}, and no JSON: {answer.messages[-300:]}")
            return
        result, error = report["result"], report.get("error") or {}
        expected = STATUS.get(result)
        if result == "refused" and error.get("code") == "I106":
            expected = 5
        if answer.status != expected:
            self.problem("untrue", f"{what} is '{result}', but the exit status is {answer.status}")
        if result in ("migrated", "current"):
            if version != "new":
                self.problem("untrue", f"{what} is '{result}', but the store is at its {version} version")
            if result == "migrated":
                self.require_backup(report.get("backup"), f"{what}'s backup")
                self.check_free_pages(" ".join(report.get("notes", ())), what)
            return
        if result == "rehearsed":
            if version != "old":
                self.problem("untrue", f"{what} is 'rehearsed', but the store is at its {version} version")
            if report.get("backup"):
                self.problem("untrue", f"{what} of a rehearsal names the backup '{report['backup']}'")
            return
        state = error.get("state") or ""
        if state.startswith("unchanged") and version != "old":
            self.problem("untrue", f"{what} says '{state}', but the store is at its {version} version ({error})")
        promised = re.search(r"backup kept at (.*)$", state)
        if promised:
            self.require_backup(promised.group(1), f"{what}'s kept backup")
        if state.startswith("damaged"):
            self.problem("untrue", f"{what} says '{state}', but the store is whole")
        if error.get("code") == "I315" and self.name in ("disk", "plugins", "writers", "stores"):
            self.problem("crashes", f"the keeper died: {error.get('cause')}")
        if not state:
            self.problem("untrue", f"{what} does not say which state the store is in: {error}")

    def check_free_pages(self, notes, what):
        """Compares what a report said of free pages with those that were found. Apps may use or leave some."""
        # A recovery that finishes a run knows nothing of its pages.
        if not self.recipe.is_compacted or self.name in ("writers", "exchange") or "a recovery finished" in notes:
            return
        given = GIVEN_BACK.search(notes)
        if given is None:
            self.problem("untrue", f"{what} does not say that free pages were given back: {notes}")
        elif self.free > int(given.group(1) or 0):
            self.problem("untrue", f"{what} says '{given.group(0)}', but {self.free} are free")

    def require_backup(self, path, what):
        if not path or not os.path.exists(path):
            self.problem("lost", f"{what} '{path}' does not exist")
            return
        version, reason = self.identify(self.read_copy(path), getattr(self, "extra_before", None))
        if version != "old":
            self.problem("lost", f"{what} is not the store from before: {reason or version}")

    def ledger(self):
        """The runs in the ledger, and the number of lines that are not one."""
        runs, broken = [], 0
        try:
            with open(os.path.join(self.state, "ledger", "ledger.jsonl"), errors="replace") as stream:
                for line in stream:
                    try:
                        runs.append(json.loads(line))
                    except ValueError:
                        broken += 1
        except OSError:
            pass
        return runs, broken

    def open_phases(self):
        """The records of runs that no recovery has finished."""
        return [name for name in listing(os.path.join(self.state, "phases")) if name.endswith(".json")]

    def open_rehearsals(self):
        """The rehearsals that no recovery has finished. A recovery that was cut off has an empty record of its own run."""
        runs = []
        for name in self.open_phases():
            try:
                with open(os.path.join(self.state, "phases", name), errors="replace") as stream:
                    lines = [line for line in stream if line.endswith("\n")]
                if lines and json.loads(lines[-1]).get("rehearses"):
                    runs.append(name.removesuffix(".json"))
            except (OSError, ValueError):
                pass  # Other checks report a record that cannot be read.
        return runs

    def check_ledger(self, version):
        """The ledger must have each run once, and a migrated run exactly where the store is migrated."""
        runs, broken = self.ledger()
        if broken:
            self.problem("untrue", f"the ledger has {broken} lines that are not a run")
        seen = [run.get("run") for run in runs]
        for run in sorted({run for run in seen if seen.count(run) > 1}):
            results = [r["result"] for r in runs if r.get("run") == run]
            self.problem("untrue", f"the ledger has run {run} {len(results)} times: {', '.join(results)}")
        migrated = [run for run in runs if run.get("result") == "migrated" and run.get("store") == self.store]
        if version == "new" and not migrated:
            self.problem("untrue", "the store is at its new version, but no run in the ledger migrated it")
        if version == "old" and migrated:
            self.problem("untrue", "the ledger has a migrated run, but the store is at its old version")
        for run in migrated:
            self.require_backup(run.get("backup"), "the ledger's backup")
        if not self.former_file_is_used and any(FORMER_FILE in note for run in runs for note in run.get("notes", ())):
            self.problem("untrue", "the ledger says that an app used the file that left, but there was none")

    # What is left

    def check_leftovers(self, version, allowed=()):
        """Nothing but the store, its external values and one backup may be left."""
        folder = os.path.dirname(self.store)
        names = set(os.listdir(folder)) - {"a.store", ".instar", ".a_SUPPORT", "state", *allowed}
        for side in SIDES:
            name = "a.store" + side
            # A store that nobody opened keeps what its app left; an open WAL store has both files.
            if name in names and self.side_may_stay(side):
                names.discard(name)
        if names:
            self.problem("leftovers", "beside the store: " + ", ".join(sorted(names)))
        backups = [name for name in listing(self.backups) if name.endswith(".backup") and not name.startswith(".")]
        own = {*backups, *(f".{name[:-len('.backup')]}_SUPPORT" for name in backups),
               *(name[:-len("backup")] + "json" for name in backups)}
        for part in {os.path.join(folder, ".instar"), self.backups}:
            others = [name for name in listing(part) if name not in own]
            if others:
                self.problem("leftovers", f"{os.path.basename(part)}: " + ", ".join(others))
        runs, _ = self.ledger()
        named = {
            os.path.basename(run["backup"]) for run in runs if run.get("backup")}
        if version == "new" and not backups:
            self.problem("lost", "the store is at its new version without a backup")
        unnamed = [name for name in backups if name not in named]
        if unnamed:
            self.problem("leftovers", "backups that no run in the ledger names: " + ", ".join(unnamed))
        if version == "new" and len(backups) > 1:
            self.problem("leftovers", f"{len(backups)} backups of one migration: " + ", ".join(backups))
        self.check_external()
        # instard touches backups-checked when it has verified a sample of the backups.
        files = ("phases", "ledger", "holds", "quarantine", "backups-checked", os.path.basename(self.backups))
        for part, kept in (("phases", ()), ("ledger", ("ledger.jsonl",)), ("holds", ()), ("", files)):
            names = set(listing(os.path.join(self.state, part))) - set(kept)
            if names:
                self.problem("leftovers", f"state/{part}: " + ", ".join(sorted(names)))

    def side_may_stay(self, side):
        untouched = {"hot": ("-journal",), "pending": ("-wal", "-shm")}.get(self.recipe.start, ())
        if self.recipe.journal == "wal" and side in ("-wal", "-shm"):
            # An empty log is what SQLite leaves of a connection that was killed; the next one removes it.
            path = self.store + side
            return side in untouched or side == "-shm" or os.path.getsize(path) == 0
        if self.recipe.journal in ("persist", "truncate") and side == "-journal":
            return True
        if self.journal_may_stay and side == "-journal":
            # SQLite ignores a journal whose header it has cleared, and removes it with the next transaction.
            with open(self.store + side, "rb") as stream:
                return stream.read(8) == bytes(8)
        return side in untouched

    def check_external(self):
        folder = stores.external_folder(self.store)
        strays = set(listing(folder)) - set(self.found.get("files", ()))
        if strays:
            self.problem("leftovers", f"{len(strays)} external files that no row references")

    # The usual end of a case

    def conclude(self, answer=None, allowed=(), extra=None, finish=None):
        """Recovers once, then checks store, reports, ledger and leftovers.

        `answer`: what the call said that was tortured, if it lived to say it.
        """
        before = self.require_whole("before recovery", copy=True, extra=extra)
        rehearsals = self.open_rehearsals()
        if answer is not None and answer.report is not None:
            rehearsals.append(answer.report.get("run"))
        if answer is not None:
            self.check_hang(answer, "the command")
            if answer.status is not None and answer.status >= 0:
                self.check_report(answer, before)
        self.await_end()
        recovery = self.programs.recover(self.store, self.state, self.bench.limit)
        self.check_hang(recovery, "the recovery")
        errors = [o["error"] for o in recovery.objects if "error" in o and "run" not in o]
        for error in errors:
            self.problem("hangs", f"the recovery failed: {error}")
        version = self.require_whole("after recovery", extra=extra)
        if before and version and version != before and answer is not None and answer.report is not None:
            self.problem("untrue", f"the recovery changed the store from {before} to {version} after the report")
        self.check_ledger(version)
        if self.is_rehearsal():
            self.check_rehearsal(version, rehearsals)
        self.check_leftovers(version, allowed)
        if finish if finish is not None else self.chance.random() < 0.3:
            self.migrate_at_last(version, extra)
        return version

    def check_rehearsal(self, version, rehearsals):
        """A rehearsal changes no store, and is in no ledger.

        `rehearsals`: the runs that were cut off or reported.
        """
        if version != "old":
            self.problem("lost", f"a rehearsal left the store at its {version} version")
        runs, _ = self.ledger()
        for run in runs:
            if run.get("run") in rehearsals or "rehearsal" in run:
                self.problem("untrue", f"the ledger has the rehearsal {run.get('run')}")

    def migrate_at_last(self, version, extra=None):
        """The store is not merely whole: the next run migrates it, or finds it current."""
        self.programs.verb = "migrate"
        answer = self.programs.migrate(self.store, self.state, self.bench.limit)
        self.check_hang(answer, "the next run")
        result = (answer.report or {}).get("result")
        if result != ("current" if version == "new" else "migrated"):
            self.problem("untrue", f"the next run of the {version} store: {result} {answer.messages[-600:]}")
        elif self.require_whole("after the next run", extra=extra) != "new":
            self.problem("lost", "the store is not at its new version after the next run")

    # Processes

    def end(self):
        """Ends what the case has started and mounted."""
        self.await_end()
        for mount in reversed(self.mounts):
            mount.remove()

    def await_end(self, limit=10.0, spared=()):
        """Waits for the processes that outlived their parents: what nobody waits for must end by itself.

        `spared`: processes of apps, which live on.
        """
        clock = Clock(children)
        while clock.read() < limit:
            left = [pid for pid in children() if pid not in spared]
            if not left:
                return
            if any(os.waitpid(pid, os.WNOHANG)[0] != 0 for pid in left):
                continue
            # Not long: an orphan of a process that has just died becomes a child, too.
            await_any(children(), 0.05)
        left = [pid for pid in children() if pid not in spared]
        for pid in left:
            command = command_of(pid)
            if "strace" not in command:
                self.problem("hangs", f"process '{command}' outlived its supervisor by {limit:.0f} s")
            os.kill(pid, signal.SIGKILL)
        for pid in left:
            os.waitpid(pid, 0)


def mismatch(found, expected, extra=None, keys_only=False):
    """Returns how the found store differs from the expected contents; None where it does not.

    `keys_only`: the values of rows may differ.
    """
    if found["version"] != expected.version:
        return f"version {found['version']}"
    if found["schema"] != expected.schema:
        return f"other statements in the schema: {sorted(set(found['schema']) ^ set(expected.schema))}"
    for table, rows in expected.rows.items():
        if table in history.TABLES:
            continue  # below
        actual = found["rows"][table]
        if extra is not None and table in ("parcel", "account"):
            actual = extra.remaining(actual)
        if keys_only:
            actual, rows = [row[:1] for row in actual], [row[:1] for row in rows]
        if actual != rows:
            wrong = [pair for pair in zip(actual, rows) if pair[0] != pair[1]][:1]
            return f"{len(actual)} rows of {table}, expected {len(rows)}; first difference: {str(wrong)[:300]}"
    return history.difference(found["rows"], expected.rows, keys_only) if "change" in expected.rows else None


def models():
    """The Swift source of the models, without the plugin that they are in."""
    with open(os.path.join(HERE, "Torture.swift")) as stream:
        text = stream.read()
    return text[:text.index("#InstarPlugin(")]


def listing(folder):
    """The names in a folder, in order; none where there is no folder."""
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def children():
    """The children of this process, among them those whose parents have died."""
    with open(f"/proc/self/task/{os.getpid()}/children") as stream:
        return [int(word) for word in stream.read().split()]


def signal_process(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "?"


def adopt_orphans():
    """Makes this process the parent of its descendants' orphans."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def trace_of(case, program, key, where=""):
    """Returns the system calls of each start of a program in an undisturbed run like this case's.

    `where`: only the calls whose line has this text. "@" is the folder with the store, and "@/a.store>" the store alone,
    without the files beside it.
    """
    path = os.path.join(case.bench.work, "traces", f"{key}-{program}.json")
    if not os.path.exists(path):
        trace_twin(case, program, path)
    with open(path) as stream:
        starts = json.load(stream)
    return {
        int(number): [(name, count) for name, count, line in found if where in line]
        for number, found in starts.items()}


def trace_twin(case, program, path):
    """Traces the run, once for all cases with the same key."""
    folder = f"{path}.{os.getpid()}"
    os.makedirs(folder)
    twin = Case(case.bench, case.name, case.seed, folder)
    twin.recipe = case.recipe
    twin.programs.more, twin.programs.plugin = case.programs.more, case.programs.plugin
    twin.programs.verb = case.programs.verb
    stores.make(twin.store, twin.recipe)
    log = os.path.join(folder, "trace")
    options = ["-y", "-e", "signal=none"]
    if program in (KEEPER, WORKER):
        for number in range(1, 6):
            twin.programs.trace(program, number, options, f"{log}.{number}")
        answer = twin.programs.migrate(twin.store, twin.state)
    else:
        answer = twin.programs.migrate(twin.store, twin.state, strace=options, log=f"{log}.1")
    if answer.status != 0:
        raise AssertionError(f"the undisturbed run failed: {answer.output[-600:]}{answer.messages[-600:]}")
    starts = {
        number: [(name, count, line.replace(twin.data, "@")[:400]) for name, count, line in lines(f"{log}.{number}")]
        for number in range(1, 6) if os.path.exists(f"{log}.{number}")}
    twin.await_end()
    with open(folder + "/found.json", "w") as stream:
        json.dump(starts, stream)
    os.rename(folder + "/found.json", path)
    shutil.rmtree(folder)
