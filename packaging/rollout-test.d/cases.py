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
        time.sleep(3)
        before = [host.count_begun() for host in self.fleet]
        time.sleep(4)
        if [host.count_begun() for host in self.fleet] != before:
            self.note("stores are migrated after the halt")

    def judge(self):
        report = self.show()
        if "failed on all hosts, and the budget is 2" not in report.get("why", ""):
            self.note(f"the halt has no reason: {report.get('why')}")
        self.check_untouched([host for host in self.fleet if self.is_later(host, report)])

    def is_later(self, host, report):
        return next(own["wave"] for own in report["hosts"] if own["host"] == host.name) > report["wave"]


class host_killed(fleet.Case):
    """A host dies in its slot: the slot is free when its lease ends, and the host goes on when it is back."""

    hosts = 3
    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=self.chance.randrange(4, 8))

    def act(self):
        host = self.wait_for_holder(self.fleet[1:])
        self.wait_until(lambda: host.count_begun() > 0, "the host works")
        self.say(f"{host.name} is killed in its slot")
        host.stop(signal.SIGKILL)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        time.sleep(self.chance.uniform(0, 8))
        host.start()
        self.wait_until(lambda: all(host.count_begun() == len(host.stores) for host in self.fleet), "all are migrated")
        self.wait_for_state("done")


class host_stopped(fleet.Case):
    """The coordinator of a host stands still in its slot for longer than the lease: instard stops in time."""

    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=44)

    def act(self):
        host = self.wait_for_holder(self.fleet[1:])
        self.wait_until(lambda: host.count_begun() > 0, "the host works")
        host.machine.signal("instar-coordinator", signal.SIGSTOP)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        # Runs in progress end.
        time.sleep(4)
        before = host.count_begun()
        time.sleep(4)
        if host.count_begun() != before:
            self.note(f"{host.name} starts runs after its slot went to others")
        if before == len(host.stores):
            self.note("the case proves nothing: all stores were migrated in time")
        host.machine.signal("instar-coordinator", signal.SIGCONT)
        self.wait_for_state("done")


class etcd_lost(fleet.Case):
    """etcd stops in the middle: the host in its slot starts no further run, and goes on when etcd is back."""

    on_loss = "pause"
    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=44)

    def start(self):
        for host in self.fleet:
            host.configure(self.on_loss)
            host.start()

    def act(self):
        host = self.wait_for_holder(self.fleet)
        self.wait_until(lambda: host.count_begun() > 0, "the host works")
        for member in self.etcd:
            member.end("etcd", signal.SIGKILL)
        self.lost(host)
        for member in self.etcd:
            self.start_member(member)
        self.wait_for_state("done")

    def lost(self, host):
        time.sleep(fleet.LEASE + 6)
        before = [one.count_begun() for one in self.fleet]
        if before[self.fleet.index(host)] == len(host.stores):
            self.note("the case proves nothing: all stores were migrated in time")
        time.sleep(4)
        if [one.count_begun() for one in self.fleet] != before:
            self.note("runs start without etcd")


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
        host = self.wait_for_holder(self.fleet)
        pairs = [(one, two) for number, one in enumerate(self.etcd) for two in self.etcd[:number]]
        for one, two in pairs:
            one.cut(two)
        self.lost(host)
        for one, two in pairs:
            one.heal(two)
        self.wait_for_state("done")


class host_cut(fleet.Case):
    """A host in its slot is cut off from etcd: its slot goes to another, and it starts no run until it is back."""

    hosts = 3
    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=44)

    def act(self):
        host = self.wait_for_holder(self.fleet[1:])
        self.wait_until(lambda: host.count_begun() > 0, "the host works")
        for member in self.etcd:
            host.machine.cut(member)
        self.wait_until(lambda: host.name not in self.slot_holders(), "the slot is free")
        time.sleep(4)
        before = host.count_begun()
        time.sleep(4)
        if host.count_begun() != before:
            self.note(f"{host.name} starts runs after its slot went to others")
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


class newer_document(fleet.Case):
    """A newer release writes the document: no host acts, and each says why. When it is readable again, all go on."""

    soak = "0s"

    def prepare(self):
        for host in self.fleet:
            host.make_stores(1, slow=30)

    def act(self):
        self.wait_for_holder(self.fleet)
        key = f"{fleet.KEYS}rollouts/{fleet.PLAN}"
        text = self.etcdctl("get", key, "--print-value-only").stdout.strip()
        newer = json.dumps({**json.loads(text), "format": 99, "state": {"new": "form"}})
        self.etcdctl("put", key, newer)
        time.sleep(4)
        before = [host.count_begun() for host in self.fleet]
        time.sleep(4)
        if [host.count_begun() for host in self.fleet] != before:
            self.note("stores are migrated by a rollout that cannot be read")
        for action in ("show", "halt", "resume"):
            answer = self.operator.control(action, "--plan", fleet.PLAN)
            if answer.returncode != 3 or "I613" not in answer.stdout:
                self.note(f"{action} ends with {answer.returncode}: {answer.stdout}")
        if self.etcdctl("get", key, "--print-value-only").stdout.strip() != newer:
            self.note("the newer document was changed")
        for host in self.fleet:
            with open(f"{host.folder}/instar-coordinator.log") as file:
                if "its format is 99" not in file.read():
                    self.note(f"{host.name} does not say that it cannot read the rollout")
        self.etcdctl("put", key, text)
        self.wait_for_state("done")


ALL = [waves, budget, host_killed, host_stopped, etcd_lost, etcd_lost_finish, host_cut, slow_host, certificate,
       newer_document, minority_cut, majority_cut, member_killed, leader_killed]
