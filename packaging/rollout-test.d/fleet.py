"""A fleet: members of etcd and hosts with instard and instar-coordinator, and what is true of it in every case."""

import base64
import collections
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import certificates
import network

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LEASE = 5
PATIENCE = 240
PLAN = "FleetPlan"
OTHER = "OtherPlan"
KEYS = "/instar/v1/"
plugin_cache = {}


class Host:
    def __init__(self, case, number):
        self.case, self.number = case, number
        self.name = f"h{number}"
        self.machine = case.network.machine(self.name)
        self.folder = f"{case.folder}/{self.name}"
        self.data, self.state = self.folder + "/data", self.folder + "/state"
        self.config, self.socket = self.folder + "/instard.yml", self.folder + "/instard.sock"
        self.stores, self.broken = [], []
        self.certificate = case.authority.issue(self.name, self.machine.address)
        os.makedirs(self.data, 0o755)

    def make_stores(self, good, broken=0, slow=0):
        titles = [None] * good + [""] * broken + ["slow"] * slow
        self.case.chance.shuffle(titles)
        for number, title in enumerate(titles):
            path = f"{self.data}/{number:03}.store"
            rows = [f"note {row}" for row in range(20)]
            if title is not None:
                rows[10] = title
            make_store(path, "note", rows)
            (self.broken if title == "" else self.stores).append(path)

    def configure(self, on_loss="pause", window=None):
        certificate, key = self.certificate
        endpoints = ", ".join(f"https://{member.address}:2379" for member in self.case.etcd)
        with open(self.config, "w") as file:
            file.write(
                f"state: {self.state}\nsocket: {self.socket}\nplugins: [{self.case.plugins}]\ndebounce: 100ms\n"
                "retry: {first: 200ms, most: 1s, attempts: 3}\nparallel: 1\n"
                f"coordinator:\n  endpoints: [{endpoints}]\n  ca: {self.case.authority.path}\n"
                f"  certificate: {certificate}\n  key: {key}\n  host: {self.name}\n  lease: {LEASE}s\n"
                f"  onCoordinatorLoss: {on_loss}\n"
                f"watches:\n  - folder: {self.data}\n    busyTimeout: 100ms\n"
                + (f"    window: {{opens: \"{window}\", length: 1h}}\n" if window else ""))

    def start(self):
        self.start_program("instard", "--foreground")
        self.start_coordinator()

    def start_coordinator(self):
        self.start_program("instar-coordinator")

    def start_program(self, kind, *options):
        self.machine.start(
            kind, [f"{self.case.options.build}/{kind}", "--config", self.config, *options],
            f"{self.folder}/{kind}.log")

    def stop(self, number=signal.SIGTERM):
        self.machine.end("instar-coordinator", number)
        self.machine.end("instard", number)

    def control(self, *arguments, config=None):
        """Runs instarctl rollout on this host."""
        command = [self.case.options.build + "/instarctl", "rollout", *arguments, "--config", config or self.config,
                   "--json"]
        return subprocess.run(
            self.machine.inside(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=60)

    def runs(self):
        answer = subprocess.run(
            [self.case.options.build + "/instarctl", "history", "--json", "--state-dir", self.state],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in answer.stdout.splitlines()]

    def count_begun(self):
        """How many stores are migrated now, as SQLite reads them."""
        return sum(version_of(store) == 2 for store in self.stores)


def make_store(path, table, rows):
    db = sqlite3.connect(path)
    db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY NOT NULL, title TEXT NOT NULL)")
    db.executemany(f"INSERT INTO {table} (title) VALUES (?)", [(row,) for row in rows])
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()


def version_of(store):
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)
    try:
        version, = db.execute("PRAGMA user_version").fetchone()
        return version
    finally:
        db.close()


def parsed(text):
    """A document of etcd; empty if it is not one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def place(host, rollout):
    """The order of hosts, as in FleetRollout.swift."""
    mask, value = (1 << 64) - 1, 0xcbf29ce484222325
    for byte in f"{rollout}/{host}".encode():
        value = (value ^ byte) * 0x100000001b3 & mask
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        value = (value ^ value >> 33) * factor & mask
    return value ^ value >> 33


def wave(host, document):
    own = place(host, document["id"])
    return 1 + sum(own > bound for bound in document["bounds"])


def build_plugin(build, path, source):
    """Builds a plugin from the text of its source."""
    text = path.removesuffix(".so") + ".swift"
    with open(text, "w") as file:
        file.write(source)
    answer = subprocess.run(
        [build + "/instarctl", "plugin", "build", text, "-o", path], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False)
    os.remove(text)
    if answer.returncode:
        sys.exit(f"rollout-test: cannot build the plugin: {answer.stderr}")


def fleet_source():
    with open(ROOT + "/packaging/fleet.d/Fleet.swift") as file:
        return file.read()


class Case:
    """One case. A subclass says what breaks, in `act`."""

    members, hosts = 1, 3
    slots, soak, waves, budget = 2, "2s", "50%,100%", None
    good = 4

    def __init__(self, options, folder, chance):
        self.options, self.folder, self.chance = options, folder, chance
        self.wrong = []
        self.may_miss = set()
        self.network = network.Network()
        self.authority = certificates.Authority(folder, "authority")
        self.plugins = folder + "/plugins"
        self.etcd = [self.network.machine(f"e{number + 1}") for number in range(options.members)]
        self.fleet = [Host(self, number + 1) for number in range(options.hosts)]

    # What a case may change.

    def prepare(self):
        for host in self.fleet:
            host.make_stores(self.good)

    def start(self):
        for host in self.fleet:
            host.configure()
            host.start()

    def act(self):
        pass

    def judge(self):
        self.check_migrated(self.fleet)

    # The course of each case.

    def run(self):
        try:
            os.mkdir(self.plugins, 0o755)
            self.build_plugin("Fleet", fleet_source())
            self.prepare()
            for member in self.etcd:
                self.start_member(member)
            self.start()
            self.create()
            self.act()
            self.judge()
            self.check_history()
            self.check_ledgers()
        except (AssertionError, TimeoutError, subprocess.SubprocessError, OSError, sqlite3.Error) as error:
            self.note(f"{type(error).__name__}: {error}")
        finally:
            self.network.close()
        return self.wrong

    def build_plugin(self, name, source):
        path = f"{self.plugins}/{name}.so"
        if name == "Fleet" and self.options.plugin:
            shutil.copyfile(self.options.plugin, path)
            return
        if name not in plugin_cache:
            build_plugin(self.options.build, path, source)
            with open(path, "rb") as file:
                plugin_cache[name] = file.read()
        with open(path, "wb") as file:
            file.write(plugin_cache[name])

    def start_member(self, member):
        base = f"{self.folder}/{member.name}"
        if not os.path.exists(base + ".pem"):
            self.authority.issue(member.name, member.address)
        peers = ",".join(f"{other.name}=http://{other.address}:2380" for other in self.etcd)
        member.start("etcd", [
            "etcd", "--name", member.name, "--data-dir", base + ".etcd", "--log-level", "error",
            "--listen-client-urls", f"https://{member.address}:2379", "--advertise-client-urls",
            f"https://{member.address}:2379", "--listen-peer-urls", f"http://{member.address}:2380",
            "--initial-advertise-peer-urls", f"http://{member.address}:2380", "--initial-cluster", peers,
            "--cert-file", base + ".pem", "--key-file", base + ".key", "--trusted-ca-file", self.authority.path,
            "--client-cert-auth", "--client-crl-file", self.authority.list, "--listen-metrics-urls",
            "http://127.0.0.1:2381"], base + ".log")

    def etcdctl(self, *arguments, member=None, text=None, timeout=20):
        member = member or self.etcd[0]
        base = f"{self.folder}/{member.name}"
        endpoints = ",".join(f"https://{other.address}:2379" for other in self.etcd)
        return subprocess.run(
            member.inside("etcdctl", "--endpoints", endpoints, "--cacert", self.authority.path, "--cert", base + ".pem",
                          "--key", base + ".key", *arguments),
            input=text, capture_output=True, text=True, check=False, timeout=timeout,
            stdin=None if text is not None else subprocess.DEVNULL,
            env={**os.environ, "ETCDCTL_API": "3"})

    def create(self):
        wanted = len([host for host in self.fleet if host.name not in self.may_miss])
        self.wait_until(lambda: self.count_registered(PLAN) >= wanted, "all hosts are registered with their stores")
        self.order()

    def order(self, plan=PLAN, slots=None):
        """Begins a rollout of all registered hosts."""
        order = ["create", "--plan", plan, "--canary", "1", "--waves", self.waves, "--soak", self.soak, "--slots",
                 f"{slots or self.slots}"] + (["--budget", self.budget] if self.budget else [])
        answer = self.operator.control(*order)
        assert answer.returncode == 0, f"instarctl rollout create: {answer.stdout}{answer.stderr}"

    def count_registered(self, plan):
        """How many hosts are registered with stores of a plan."""
        answer = self.etcdctl("get", "--prefix", KEYS + "hosts/", "--print-value-only")
        hosts = [json.loads(line)["plans"] for line in answer.stdout.splitlines() if line]
        return sum(any(own["plan"] == plan and own["stores"] for own in plans) for plans in hosts)

    @property
    def operator(self):
        return self.fleet[0]

    # What cases use.

    def note(self, text):
        self.wrong.append(text)
        print(f"rollout-test: wrong: {text}", flush=True)

    def say(self, text):
        print(f"rollout-test:   {text}", flush=True)

    def wait_until(self, condition, what, patience=PATIENCE):
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {patience} s: {what}; {json.dumps(self.show())[:3000]}")
            time.sleep(0.3)

    def show(self):
        answer = self.operator.control("show", "--plan", PLAN)
        lines = answer.stdout.splitlines()
        return json.loads(lines[0]) if answer.returncode == 0 and lines else {}

    def wait_for_report(self):
        """What the rollout shows. On a busy machine the command may end without it."""
        found = {}

        def shows():
            found.update(self.show())
            return found
        self.wait_until(shows, "the rollout is shown")
        return found

    def wait_for_state(self, state):
        self.wait_until(lambda: self.show().get("state") == state, f"the rollout is {state}")

    def wait_for_wave(self, number):
        self.wait_until(lambda: self.show().get("wave", 0) >= number, f"wave {number} is open")

    def slot_holders(self, plan=PLAN):
        answer = self.etcdctl("get", "--prefix", f"{KEYS}slots/{plan}/", "--print-value-only")
        return set(answer.stdout.split())

    def wait_for_holder(self, hosts):
        found = []

        def has_slot():
            holders = self.slot_holders()
            found[:] = [host for host in hosts if host.name in holders]
            return found
        self.wait_until(has_slot, "one of the hosts has a slot")
        return found[0]

    def wait_for_worker(self, hosts):
        """Waits until one of the hosts has a slot and has migrated a store."""
        host = self.wait_for_holder(hosts)
        self.wait_until(lambda: host.count_begun() > 0, "the host works")
        return host

    def check_quiet(self, hosts, what, delay=4):
        """Checks that the hosts begin nothing, once the runs in progress have ended."""
        time.sleep(delay)
        before = [host.count_begun() for host in hosts]
        time.sleep(4)
        if [host.count_begun() for host in hosts] != before:
            self.note(what)
        if all(count == len(host.stores) for count, host in zip(before, hosts)):
            self.note("the case proves nothing: all stores were migrated in time")

    # What is true in each case.

    def check_migrated(self, hosts):
        for host in hosts:
            for store in host.stores:
                if version_of(store) != 2:
                    self.note(f"{store} is not migrated")
            for store in host.broken:
                if version_of(store) != 1:
                    self.note(f"{store} is broken and was changed")

    def check_untouched(self, hosts):
        for host in hosts:
            for store in host.stores + host.broken:
                if version_of(store) != 1:
                    self.note(f"{store} was migrated, and its host had no turn")

    def check_ledgers(self):
        failed = 0
        for host in self.fleet:
            runs = host.runs()
            times = collections.Counter(run["store"] for run in runs if run["result"] == "migrated")
            failed += len({run["store"] for run in runs if run["result"] == "failed"})
            for store in host.stores:
                if times[store] > 1 or version_of(store) == 2 and times[store] != 1:
                    self.note(f"{store} has {times[store]} migrations in the ledger")
        if self.budget:
            # Four small stores share the one slot of an instard with 'parallel: 1'.
            limit = self.allowed + 4 * self.slots
            self.say(f"{failed} stores failed, the budget is {self.allowed}")
            if failed > limit:
                self.note(f"{failed} stores failed; the budget and the runs in progress allow {limit}")

    def history(self):
        """All changes of etcd until now, in order: (revision, key, value or None)."""
        answer = json.loads(self.etcdctl("get", "--prefix", KEYS, "--limit", "1", "-w", "json").stdout)
        # A busy machine needs longer, and a member that was cut off a moment ago ends the watch.
        for seconds in (4, 10, 30, 60):
            changes = list(self.watch_from_start(seconds))
            if changes and changes[-1][0] >= answer["header"]["revision"]:
                return changes
        raise AssertionError("etcd does not show its whole history")

    def watch_from_start(self, seconds):
        """What etcd reports in so many seconds to a watch that begins with the first change."""
        base = f"{self.folder}/{self.etcd[0].name}"
        command = ["timeout", str(seconds), "etcdctl", "--endpoints",
                   ",".join(f"https://{other.address}:2379" for other in self.etcd), "--cacert", self.authority.path,
                   "--cert", base + ".pem", "--key", base + ".key", "watch", "--prefix", KEYS, "--rev", "1", "-w",
                   "json"]
        answer = subprocess.run(self.etcd[0].inside(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=False, env={**os.environ, "ETCDCTL_API": "3"})
        for line in answer.stdout.splitlines():
            # Without events, etcd only says that the watch began or ended.
            for event in json.loads(line).get("Events") or []:
                pair = event["kv"]
                value = None if event.get("type") == 1 else base64.b64decode(pair.get("value", "")).decode()
                yield pair["mod_revision"], base64.b64decode(pair["key"]).decode()[len(KEYS):], value

    def check_history(self):
        """Replays what etcd has seen."""
        documents, hosts, slots, results, revisions = {}, set(), {}, {}, 0
        followers = set()
        for revision, key, value in self.history():
            revisions += 1
            kind, _, rest = key.partition("/")
            group, _, name = rest.rpartition("/")
            if kind == "hosts":
                hosts.discard(name) if value is None else hosts.add(name)
            elif kind == "slots" and name.isdigit():
                slots.setdefault(group, {})[name] = value
                self.check_slots(revision, group, slots[group], value, documents)
            elif kind == "results" and value is not None:
                result = parsed(value)
                if not {"state", "migrated", "failed"} <= result.keys():
                    continue
                results.setdefault(group, {})[name] = result
                document = next((one for one in documents.values() if one["id"] == group), None)
                # The results of a next rollout count the runs of the former one too.
                if document and group not in followers and result["migrated"] + result["failed"] and wave(name, document) > document["wave"]:
                    self.note(f"revision {revision}: {name} worked in wave {document['wave']}: {result}")
            elif kind == "rollouts" and value is not None:
                new, old = parsed(value), documents.get(name)
                # Of a newer release, or nonsense.
                if new.get("format") != 1 or "id" not in new:
                    continue
                if old and old["id"] == new["id"] and new["wave"] > old["wave"]:
                    self.check_opening(revision, old, new, hosts, results.get(new["id"], {}))
                if old and old["id"] != new["id"]:
                    followers.add(new["id"])
                documents[name] = new
        if not revisions:
            self.note("etcd has no history")
        self.allowed = documents.get(PLAN, {}).get("allowedFailures", 0)

    def check_slots(self, revision, plan, taken, host, documents):
        """Checks what holds when a host takes a slot. Slots of a former rollout count until they are given back."""
        document = documents[plan]
        holders = [one for one in taken.values() if one is not None]
        if host is None:
            return
        if len(holders) > document["slots"]:
            self.note(f"revision {revision}: {holders} have a slot of {document['slots']}")
        if len(set(holders)) != len(holders):
            self.note(f"revision {revision}: a host has two slots: {holders}")
        if document["state"] != "running" or wave(host, document) > document["wave"]:
            self.note(f"revision {revision}: {host} took a slot before its turn: {document}")

    def check_opening(self, revision, old, new, hosts, results):
        if new["wave"] != old["wave"] + 1:
            self.note(f"revision {revision}: wave {new['wave']} follows wave {old['wave']}")
        own = {name: result for name, result in results.items() if wave(name, old) <= old["wave"]}
        early = [name for name, result in own.items() if name in hosts and result["state"] != "verified"]
        if early:
            self.note(f"revision {revision}: wave {new['wave']} opened before {early} were verified")
        if own and not any(result["state"] == "verified" for result in own.values()):
            self.note(f"revision {revision}: wave {new['wave']} opened, and no host was verified")
        if not old.get("isSoaking") and old["soakSeconds"]:
            self.note(f"revision {revision}: wave {new['wave']} opened without a soak")
