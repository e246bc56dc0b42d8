# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pairs of network namespaces with traffic between devices of the module, and what may happen to them at any time."""

import errno
import os
import signal
import subprocess
import time

import beds
import ends
import netlink

INTERFACE = "veth0"
PORT = 5000
SERVERS = 2  # an end
CLIENTS = 1  # a server
ROUNDS_MAX = 40  # of a client that ends by itself; some never do
WRONG_BYTES = 3
ENDED_WELL = 0
KINDS = ("qp", "cm_id", "mr", "cq", "pd")


# What another event of the same round may have done, or undone.
GONE_OR_THERE = (errno.EEXIST, errno.ENODEV, errno.EADDRNOTAVAIL, errno.ENOENT, errno.EAGAIN, errno.EBUSY, errno.ENETDOWN)


def objects():
    """What the kernel holds for programs."""
    return {kind: count for kind in KINDS
            if (count := ends.run(["rdma", "resource", "show", kind]).count(" comm "))}


def attempt(act, *arguments):
    """It may be done already, or have nothing to be done to."""
    try:
        act(*arguments)
    except OSError as error:
        if error.errno not in GONE_OR_THERE:
            raise


class Peers:
    """The process that forks an end's servers and clients (peer.c); running are their numbers, each with its line."""

    def __init__(self, into, program):
        self.process = subprocess.Popen([*into, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.running, self.statuses, self.wanted, self.rest = {}, {}, [], ""
        ends.wait_until(lambda: self.read() == "ready\n", "process of the peers")

    def read(self):
        """Whole lines that it has printed."""
        try:
            text = self.rest + os.read(self.process.stdout.fileno(), 65536).decode()
        except BlockingIOError:
            text = self.rest
        whole, _, self.rest = text.rpartition("\n")
        return whole + "\n" if whole else ""

    def look(self):
        """What has begun and ended since."""
        for line in self.read().splitlines():
            pid, *status = map(int, line.split())
            if not status:
                self.running[pid] = self.wanted.pop(0)
            else:
                self.running.pop(pid)
                self.statuses[pid] = status[0]

    def start(self, line):
        self.wanted.append(line)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def started(self):
        self.look()
        return not self.wanted

    def of(self, verb):
        return [pid for pid, line in self.running.items() if line.startswith(verb)]

    def kill(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended, and its status is on the way
                pass

    def is_idle(self):
        self.look()
        return not self.wanted and not self.running

    def end_all(self):
        ends.wait_until(self.started, "processes that were asked for")
        self.kill(list(self.running))
        ends.wait_until(self.is_idle, f"end of the killed {self.running}")

    def close(self):
        self.end_all()
        self.process.stdin.close()
        assert self.process.wait(ends.SECONDS_MAX) == 0
        self.process.stdout.close()


class End:
    """One namespace, its interface and its device."""

    def __init__(self, name, number, link_type, program):
        self.device, self.link_type, self.program = name, link_type, program
        self.address = beds.ENDS[number][0]
        self.namespace = beds.Namespace()
        self.netlink = netlink.Netlink(self.namespace.holder.pid)
        self.peers = None

    def set_up(self):
        """As far as it is not."""
        self.netlink.set_link("lo", True)
        attempt(self.netlink.change_address, netlink.RTM_NEWADDR, INTERFACE, self.address)
        self.netlink.set_link(INTERFACE, True)
        ends.wait_until(self.has_device, f"device {self.device}")
        if not self.peers:
            self.peers = Peers(self.namespace.into, self.program)

    def has_device(self):
        """Adds it; false: the one of an interface before still has its name."""
        try:
            self.netlink.add_device(self.device, self.link_type, INTERFACE)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENFILE):
                raise
            return error.errno == errno.EEXIST
        return True

    def close(self):
        if self.peers:
            self.peers.close()
        self.namespace.close()


class Pair:
    """Two ends. The second one's clients use the first one's servers, and the other way round."""

    def __init__(self, number, link_type, program):
        self.number, self.link_type, self.program = number, link_type, program
        self.ends = []
        self.repair()

    def end(self):
        """Both namespaces, with what is in them."""
        ended, self.ends = self.ends, []
        for end in ended:
            end.close()

    def begin(self):
        self.ends = [End(f"{self.link_type}{self.number}_{i}", i, self.link_type, self.program) for i in range(2)]

    def repair(self):
        """What is not there any more comes back."""
        if not self.ends:
            self.begin()
        first, second = self.ends
        attempt(first.netlink.add_veth, INTERFACE, second.namespace.holder.pid)
        for end in self.ends:
            end.set_up()

    def others(self):
        return zip(self.ends, reversed(self.ends))

    def keep_busy(self, random, clients=CLIENTS):
        """Servers and clients in place of those that have ended."""
        for here, there in self.others():
            here.peers.look()
            missing = SERVERS - len(here.peers.of("serve")) - sum("serve" in each for each in here.peers.wanted)
            for i in range(missing):
                here.peers.start(f"serve {here.address} {PORT + i}")
            for _ in range(SERVERS * clients - len(here.peers.of("use")) - sum("use" in each for each in here.peers.wanted)):
                rounds = random.choice((0, random.randrange(1, ROUNDS_MAX)))
                here.peers.start(f"use {there.address} {PORT + random.randrange(SERVERS)} {rounds}")

    def statuses(self):
        return [status for end in self.ends for status in end.peers.statuses.values()]

    def quieten(self):
        for end in self.ends:
            end.peers.end_all()

    def check_works(self):
        """A conversation each way, which ends well."""
        for here, there in self.others():
            here.peers.start(f"serve {here.address} {PORT}")
            deadline = time.monotonic() + ends.SECONDS_MAX
            while not self.converse(there.peers, here.address):
                assert time.monotonic() < deadline, "no conversation ends well"
            here.peers.end_all()

    @staticmethod
    def converse(peers, address):
        """False: perhaps the server does not listen yet."""
        before = set(peers.statuses)
        peers.start(f"use {address} {PORT} 5")
        ends.wait_until(peers.is_idle, "end of a conversation")
        (status,) = [peers.statuses[pid] for pid in set(peers.statuses) - before]
        return status == ENDED_WELL

