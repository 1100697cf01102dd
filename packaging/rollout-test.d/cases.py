"""What can happen to a fleet during a rollout."""

import json
import signal
import time

import certificates
import fleet


class waves(fleet.Case):
    """Nothing breaks: canary, soak, waves, done."""

    def act(self):
        self.wait_for_state("done")


class budget(fleet.Case):
    """A third of the stores fail: the rollout halts, and the hosts of later waves are untouched."""

    budget = "2"
    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(4, broken=2)

    def act(self):
        self.wait_for_state("halted")
        self.check_quiet(self.fleet, "stores are migrated after the halt", delay=10)

    def judge(self):
        report = self.wait_for_report()
        if "failed across all hosts, and the budget is 2" not in report.get("why", ""):
            self.note(f"the halt has no reason: {report.get('why')}")
        self.check_untouched([host for host in self.fleet if self.is_later(host, report)])

    def is_later(self, host, report):
        return next(own["wave"] for own in report["hosts"] if own["host"] == host.name) > report["wave"]


class long_runs(fleet.Case):
    """Each host needs some ten seconds."""

    slots, soak = 4, "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=44)


class halted(long_runs):
    """An operator halts the rollout while several hosts migrate: within seconds none of them begins a run."""

    hosts = 3

    def act(self):
        self.wait_for_wave(2)
        # Not one for each slot: hosts of a wave that is smaller than that are done one after the other.
        count = min(2, len(self.fleet) // 2)
        self.wait_until(lambda: len(self.workers()) >= count, f"{count} hosts are in the middle of their work")
        before = time.time()
        answer = self.operator.control("halt", "--plan", fleet.PLAN, "--why", "a test")
        assert answer.returncode == 0, f"instarctl rollout halt: {answer.stdout}{answer.stderr}"
        after = time.time()
        self.check_quiet(self.fleet, "stores are migrated after the halt")
        last = max((run["startedAt"] for host in self.fleet for run in host.runs()), default=0)
        self.say(f"the halt of {count} hosts took {after - before:.1f} s, "
                 f"and the last run began {max(0, last - after):.1f} s after it")
        if last - after > 3:
            self.note(f"a run began {last - after:.1f} s after the halt")
        why = self.wait_for_report().get("why", "")
        if "a test" not in why:
            self.note(f"the halt has no reason: {why}")
        answer = self.operator.control("resume", "--plan", fleet.PLAN)
        assert answer.returncode == 0, f"instarctl rollout resume: {answer.stdout}{answer.stderr}"
        self.wait_for_state("done")

    def workers(self):
        holders = self.slot_holders()
        return [host for host in self.fleet if host.name in holders and 0 < host.count_begun() < len(host.stores)]


class host_killed(fleet.Case):
    """A host dies in its slot: the slot is free when its lease ends, and the host goes on when it is back."""

    hosts = 3
    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=self.chance.randrange(4, 8))

    def act(self):
        host = self.wait_for_worker(self.fleet[1:])
        self.say(f"{host.name} is killed in its slot")
        host.stop(signal.SIGKILL)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        time.sleep(self.chance.uniform(0, 8))
        host.start()
        self.wait_until(lambda: all(host.count_begun() == len(host.stores) for host in self.fleet), "all are migrated")
        self.wait_for_state("done")


class host_stopped(long_runs):
    """The coordinator of a host stands still in its slot for longer than the lease: instard stops in time."""

    def act(self):
        host = self.wait_for_worker(self.fleet[1:])
        host.machine.signal("instar-coordinator", signal.SIGSTOP)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        self.check_quiet([host], f"{host.name} starts runs after its slot went to others")
        host.machine.signal("instar-coordinator", signal.SIGCONT)
        self.wait_for_state("done")


class etcd_lost(long_runs):
    """etcd stops in the middle: the host in its slot starts no further run, and goes on when etcd is back."""

    on_loss = "pause"

    def prepare(self):
        for host in self.fleet:
            # More than are done until etcd is lost and the lease has ended.
            host.make_stores(1, slow=100)

    def start(self):
        for host in self.fleet:
            host.configure(self.on_loss)
            host.start()

    def act(self):
        host = self.wait_for_worker(self.fleet)
        for member in self.etcd:
            member.end("etcd", signal.SIGKILL)
        self.lost(host)
        for member in self.etcd:
            self.start_member(member)
        self.wait_for_state("done")

    def lost(self, host):
        self.check_quiet(self.fleet, "runs start without etcd", delay=fleet.LEASE + 6)
        if host.count_begun() == len(host.stores):
            self.note("the case proves nothing: the host had migrated all its stores")


class etcd_lost_finish(etcd_lost):
    """As etcd_lost, with 'onCoordinatorLoss: finishWave': the host migrates all its stores, and no other begins."""

    on_loss = "finishWave"

    def lost(self, host):
        self.wait_until(lambda: host.count_begun() == len(host.stores), "the host finishes without etcd")
        self.check_untouched([one for one in self.fleet if one is not host])


class minority_cut(fleet.Case):
    """A member of etcd is cut off from the others, and the hosts still reach it: the rollout goes on."""

    members = 3

    def act(self):
        self.wait_for_wave(2)
        one = self.chance.choice(self.etcd)
        others = [member for member in self.etcd if member is not one]
        self.say(f"{one.name} is cut off from {[member.name for member in others]}")
        for other in others:
            one.cut(other)
        self.wait_for_state("done")
        for other in others:
            one.heal(other)


class majority_cut(etcd_lost):
    """All members are cut off from each other: no host begins anything, until they reach each other again."""

    members = 3

    def act(self):
        host = self.wait_for_worker(self.fleet)
        pairs = [(one, two) for number, one in enumerate(self.etcd) for two in self.etcd[:number]]
        for one, two in pairs:
            one.cut(two)
        self.lost(host)
        for one, two in pairs:
            one.heal(two)
        self.wait_for_state("done")


class host_cut(long_runs):
    """A host in its slot is cut off from etcd: its slot goes to another, and it starts no run until it is back."""

    hosts = 3

    def act(self):
        self.cut(self.wait_for_worker(self.fleet[1:]))

    def cut(self, host):
        self.say(f"{host.name} is cut off from etcd")
        for member in self.etcd:
            host.machine.cut(member)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        self.check_quiet([host], f"{host.name} starts runs after its slot went to others")
        for member in self.etcd:
            host.machine.heal(member)
        self.wait_for_state("done")
        self.wait_until(lambda: host.count_begun() == len(host.stores), "the host has finished")


class member_killed(fleet.Case):
    """A member of etcd that is not the leader is killed, and stays away."""

    members = 3
    leads = False

    def act(self):
        self.wait_for_wave(2)
        member = self.chance.choice([one for one in self.etcd if (one is self.leader()) == self.leads])
        self.say(f"{member.name} is killed")
        member.end("etcd", signal.SIGKILL)
        self.wait_for_state("done")
        self.start_member(member)

    def leader(self):
        answer = self.etcdctl("endpoint", "status", "-w", "json")
        for status in json.loads(answer.stdout):
            if status["Status"]["header"]["member_id"] == status["Status"]["leader"]:
                return next(member for member in self.etcd if member.address in status["Endpoint"])
        raise AssertionError("etcd has no leader")


class leader_killed(member_killed):
    """The leader of etcd is killed, and stays away."""

    leads = True


class slow_host(fleet.Case):
    """One host takes ten times as long: its wave waits for it."""

    soak = "0s"

    def prepare(self):
        slow = self.chance.choice(self.fleet)
        for host in self.fleet:
            host.make_stores(2, slow=60 if host is slow else 0)

    def act(self):
        self.wait_for_state("done")


class clock_skew(host_cut):
    """One host's clock is hours ahead, one's is hours behind: permissions and soaks last as long as they should."""

    waves, soak, slots = "70%,100%", "8s", 2

    def start(self):
        self.skewed = [self.fleet[1], self.fleet[2]]
        for host, sign in zip(self.skewed, (1, -1)):
            hours = sign * self.chance.randrange(2, 20)
            self.say(f"the clock of {host.name} is {hours} hours off")
            host.machine.skew(hours, host.folder)
        super().start()

    def act(self):
        seen = {}

        def note_times():
            report = self.show()
            if report:
                seen.setdefault((report["wave"], report["isSoaking"]), time.monotonic())
            return report.get("state") == "done"
        cut = []

        def goes_on():
            done = note_times()
            holders = self.slot_holders()
            for host in self.skewed:
                # Nothing is noted during the cut: the soak must be over.
                if (not cut and (2, False) in seen and host.name in holders
                        and 0 < host.count_begun() < len(host.stores) // 2):
                    cut.append(host)
                    self.cut(host)
            return done
        self.wait_until(goes_on, "the rollout is done")
        if not cut:
            self.note("no host with a skewed clock was cut off")
        if (1, True) not in seen:
            self.note("no soak was seen")
        for number in range(1, 3):
            if (number, True) in seen and (number + 1, False) in seen:
                soak = seen[number + 1, False] - seen[number, True]
                self.say(f"the soak after wave {number} lasted {soak:.0f} s")
                if not 5 < soak < 20:
                    self.note(f"the soak after wave {number} lasted {soak:.0f} s, and was to last {self.soak}")


class closed_window(fleet.Case):
    """The window of a host is closed: its slot goes to others, and the host takes it again when the window opens."""

    waves, soak, slots = "100%", "0s", 1

    def start(self):
        self.closed = self.chance.choice(self.fleet)
        later = time.strftime("%H:00", time.localtime(time.time() + 12 * 3600))
        for host in self.fleet:
            host.configure(window=later if host is self.closed else None)
            host.start()

    def act(self):
        def others_are_done():
            report = self.show()
            hosts = {host["host"]: host for host in report.get("hosts", [])}
            own = hosts.get(self.closed.name, {})
            return "window" in own.get("obstacle", "") and all(
                host["state"] == "verified" for host in hosts.values()
                if host is not own and host["wave"] <= max(report["wave"], own["wave"]))
        self.wait_until(others_are_done, "the others of its wave are done, and it waits for its window")
        if self.slot_holders():
            self.note(f"{self.slot_holders()} have slots that they cannot use")
        self.check_untouched([self.closed])
        self.closed.configure()
        self.closed.machine.signal("instard", signal.SIGHUP)
        self.wait_for_state("done")


class two_plans(fleet.Case):
    """A host migrates a store of another plan for long: it gives the slot of this plan back meanwhile."""

    waves, soak, slots = "100%", "0s", 1

    def prepare(self):
        super().prepare()
        self.build_plugin("Other", fleet.fleet_source().replace("Fleet", "Other").replace('"note"', '"item"').replace(
            "FROM note", "FROM item"))
        self.busy = self.chance.choice(self.fleet)
        fleet.make_store(self.busy.data + "/other.store", "item", ["slow"] * 60)

    def create(self):
        self.wait_until(lambda: self.count_registered(fleet.OTHER), "a host has a store of the other plan")
        self.order(fleet.OTHER)
        self.wait_until(lambda: self.slot_holders(fleet.OTHER), "it has a slot for the other plan")
        super().create()

    def act(self):
        self.wait_until(lambda: self.busy.count_begun() == len(self.busy.stores), "the stores of this plan are migrated")
        self.wait_until(lambda: self.busy.name not in self.slot_holders(), "it has given the slot back", patience=20)
        if self.busy.name not in self.slot_holders(fleet.OTHER):
            self.note("the case proves nothing: the store of the other plan is migrated")
        self.wait_for_state("done")


class next_rollout(long_runs):
    """A rollout is halted, and the next one begins with one slot, while hosts still finish their runs."""

    waves = "100%"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(0, slow=20)

    def act(self):
        # Others than the canary, so that several have slots.
        self.wait_for_wave(2)
        self.wait_until(lambda: len(self.slot_holders()) > 1, "several hosts have a slot")
        self.operator.control("halt", "--plan", fleet.PLAN)
        self.order(slots=1)
        self.wait_for_state("done")


class damaged_documents(long_runs):
    """Somebody writes nonsense to etcd: the rollout goes on, and waits for a host whose report cannot be read."""

    waves, slots = "100%", 1

    def act(self):
        self.wait_for_wave(2)
        host = self.wait_for_holder(self.fleet)
        report = f"{fleet.KEYS}results/{self.wait_for_report()['id']}/{host.name}"
        nonsense = ["", "[", "{}", "[" * 5000, '{"format":1}', '{"format":1e999}', "\x1b[2J\n\n", '{"stores":-1}',
                    '{"wave":1,"stores":9223372036854775807,"migrated":0,"failed":0,"deferred":0,"at":0}']
        for number, text in enumerate(nonsense):
            for key in (f"rollouts/No{number}", f"rollouts/a\nb{number}", f"hosts/no{number}", f"soaks/no{number}",
                        f"results/no/{number}", f"slots/{fleet.PLAN}/no{number}"):
                self.etcdctl("put", "--", fleet.KEYS + key, text)

        def state():
            return next((one["state"] for one in self.show().get("hosts", []) if one["host"] == host.name), None)
        # Before that, the host writes its report again by itself.
        self.wait_until(lambda: state() == "verified", "the host is done")
        self.etcdctl("put", "--", report, self.chance.choice(nonsense))
        self.wait_until(lambda: state() == "unreadable", "the host is shown with its damaged report")
        self.wait_until(lambda: all(one.count_begun() == len(one.stores) for one in self.fleet), "all are migrated")
        time.sleep(4)
        if self.wait_for_report()["state"] != "running":
            self.note("the wave ended without the damaged report")
        host.machine.end("instar-coordinator", signal.SIGTERM)
        host.start_coordinator()
        self.wait_for_state("done")


class certificate(fleet.Case):
    """A host's certificate is revoked, and somebody has one of another authority: neither has a part in the rollout."""

    def prepare(self):
        super().prepare()
        self.revoked = self.fleet[-1]
        self.authority.revoke(self.revoked.certificate[0])
        self.may_miss = {self.revoked.name}

    def act(self):
        other = certificates.Authority(self.folder, "other")
        stranger = self.fleet[1]
        pem, key = other.issue("stranger", stranger.machine.address)
        config = self.folder + "/stranger.yml"
        with open(stranger.config) as file:
            text = file.read()
        with open(config, "w") as file:
            file.write(text.replace(stranger.certificate[0], pem).replace(stranger.certificate[1], key))
        for action in (["halt", "--plan", fleet.PLAN], ["show"]):
            answer = stranger.control(*action, config=config)
            if answer.returncode != 6 or "I612" not in answer.stdout:
                self.note(f"a stranger's {action[0]} ends with {answer.returncode}: {answer.stdout}")
        self.wait_for_state("done")

    def judge(self):
        self.check_migrated(self.fleet[:-1])
        self.check_untouched([self.revoked])


class newer_document(long_runs):
    """A newer release writes the document: no host acts, and each says why. When it is readable again, all go on."""

    def act(self):
        self.wait_for_holder(self.fleet)
        key = f"{fleet.KEYS}rollouts/{fleet.PLAN}"
        text = self.etcdctl("get", key, "--print-value-only").stdout.strip()
        newer = json.dumps({**json.loads(text), "format": 99, "state": {"new": "form"}})
        self.etcdctl("put", key, newer)
        self.check_quiet(self.fleet, "stores are migrated by a rollout that cannot be read", delay=10)
        for action in ("show", "halt", "resume"):
            answer = self.operator.control(action, "--plan", fleet.PLAN)
            if answer.returncode != 3 or "I613" not in answer.stdout:
                self.note(f"{action} ends with {answer.returncode}: {answer.stdout}")
        if self.etcdctl("get", key, "--print-value-only").stdout.strip() != newer:
            self.note("the newer document was changed")
        for host in self.fleet:
            with open(f"{host.folder}/instar-coordinator.log") as file:
                if "the document has format 99" not in file.read():
                    self.note(f"{host.name} does not say that it cannot read the rollout")
        self.etcdctl("put", key, text)
        self.wait_for_state("done")


ALL = [waves, budget, halted, host_killed, host_stopped, etcd_lost, etcd_lost_finish, host_cut, slow_host, clock_skew,
       closed_window, two_plans, next_rollout, damaged_documents, certificate, newer_document,
       minority_cut, majority_cut, member_killed, leader_killed]
