"""Machines of a fleet as network namespaces on one bridge, which is in a namespace too: nothing of this machine's own
network is touched."""

import os
import subprocess


def call(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Network:
    def __init__(self):
        self.hub = "hub"
        self.machines = []
        call("ip", "netns", "add", self.hub)
        call("ip", "-n", self.hub, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", self.hub, "link", "set", "br0", "up")

    def machine(self, name):
        machine = Machine(self, name, len(self.machines) + 1)
        self.machines.append(machine)
        return machine

    def close(self):
        for machine in self.machines:
            machine.close()
        call("ip", "netns", "del", self.hub)


class Machine:
    def __init__(self, network, name, number):
        self.name, self.namespace = name, name
        self.address = f"10.231.77.{number}"
        self.processes = {}
        self.clock = []
        call("ip", "netns", "add", self.namespace)
        call("ip", "-n", network.hub, "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns",
             self.namespace)
        call("ip", "-n", network.hub, "link", "set", f"v{number}", "master", "br0", "up")
        call("ip", "-n", self.namespace, "address", "add", self.address + "/24", "dev", "eth0")
        call("ip", "-n", self.namespace, "link", "set", "eth0", "up")
        call("ip", "-n", self.namespace, "link", "set", "lo", "up")

    def cut(self, other):
        """Loses what it sends to another machine, and what that one sends to it."""
        for one, two in ((self, other), (other, self)):
            call("ip", "-n", one.namespace, "route", "replace", "blackhole", two.address + "/32")

    def heal(self, other):
        for one, two in ((self, other), (other, self)):
            call("ip", "-n", one.namespace, "route", "del", "blackhole", two.address + "/32")

    def skew(self, hours, folder):
        """Sets the wall clock of programs that start from now on. Other clocks count durations, and are right."""
        library = folder + "/skew.so"
        call("cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library,
             os.path.dirname(os.path.realpath(__file__)) + "/skew.c")
        self.clock = ["env", f"LD_PRELOAD={library}", f"SKEW_SECONDS={hours * 3600}"]

    def inside(self, *command):
        return ["ip", "netns", "exec", self.namespace, *command]

    def start(self, kind, command, log):
        with open(log, "a") as file:
            self.processes[kind] = subprocess.Popen(
                self.inside(*self.clock, *command), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def signal(self, kind, number):
        self.processes[kind].send_signal(number)

    def end(self, kind, number):
        if kind in self.processes:
            self.signal(kind, number)
            self.processes.pop(kind).wait(60)

    def close(self):
        for kind in list(self.processes):
            self.end(kind, 9)
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)
