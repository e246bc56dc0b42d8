# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two network namespaces joined by a veth pair, with a device of the kernel module in one or in both of
them. Where there is none, programs run on the libraries of user space."""

import collections
import re
import shlex
import subprocess

import beds
import program

SECONDS_MAX = 120
# A server that listens on all addresses listens once for each device of the machine, bound to the index of its
# interface: those of two namespaces are to differ.
INDEXES = (21, 22)
INTERFACE = "veth0"
MTU_MAX = 9000
OCTETS_BEFORE = 1 << 20  # the least that is traffic
# A row of perftest's: size and iterations, then times.
PERFTEST_ROW = r"(?m)^ +(\d+) +\d+ +(?:[\d.]+|inf) "
KERNEL, USER = "kernel", "user"
# Server, client.
PAIRS = {"kernel_kernel": (KERNEL, KERNEL), "kernel_serves_user": (KERNEL, USER),
         "user_serves_kernel": (USER, KERNEL)}


def run(argv):
    """What it prints; it has to end well."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{shlex.join(argv)}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def wait_until(condition, what, seconds=SECONDS_MAX):
    return program.wait_until(condition, what, seconds)


class End:
    """One namespace; device is the name of the kernel's device in it, or None."""

    def __init__(self, number, build):
        self.number, self.build = number, build
        self.address, self.address6 = beds.ENDS[number]
        self.namespace = beds.Namespace()
        self.into = self.namespace.into
        self.device = None
        self.mpa = ""

    def ip(self, *lines):
        """All in one process: under User Mode Linux starting one is dear."""
        done = subprocess.run([*self.into, "ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, timeout=SECONDS_MAX, check=False)
        assert done.returncode == 0, f"{lines}: {done.stderr}"

    def set_up(self, mtu):
        self.ip("link set lo up", f"addr add {self.address}/24 dev {INTERFACE}",
                f"addr add {self.address6}/64 dev {INTERFACE} nodad", f"link set {INTERFACE} mtu {mtu} up")

    def add_device(self, link_type):
        name = f"{link_type}{self.number}"
        run([*self.into, "rdma", "link", "add", name, "type", link_type, "netdev", INTERFACE])
        self.device = name

    def delete_device(self):
        name, self.device = self.device, None
        run([*self.into, "rdma", "link", "delete", name])

    def start(self, line):
        own = [] if self.device else [f"LD_LIBRARY_PATH={self.build}/lib", f"ANYWARP_MPA={self.mpa}"]
        return program.Program([*self.into, "env", *own, "stdbuf", "-oL", *shlex.split(line)])

    def close(self):
        self.namespace.close()


class Bed:
    """Two ends, of these kinds."""

    def __init__(self, kinds, link_type, build):
        self.mtu = MTU_MAX
        self.ends = [End(number, build) for number in range(2)]
        first, second = self.ends
        first.ip(f"link add {INTERFACE} index {INDEXES[0]} type veth peer name {INTERFACE} "
                 f"index {INDEXES[1]} netns {second.namespace.holder.pid}")
        for end, kind in zip(self.ends, kinds):
            end.set_up(self.mtu)
            if kind == KERNEL:
                end.add_device(link_type)

    def at_mtu(self, mtu):
        """The ends, of which what a test set is forgotten."""
        for end in self.ends:
            end.mpa = ""
            if mtu != self.mtu:
                end.ip(f"link set {INTERFACE} mtu {mtu}")
        self.mtu = mtu
        return self.ends

    def close(self):
        """One namespace's end is the end of both interfaces: the devices go before."""
        for end in self.ends:
            if end.device:
                end.delete_device()
        for end in self.ends:
            end.close()


class Link(collections.namedtuple("Link", "server client started")):
    """started are the programs of one test, to be ended when it is over."""

    def run(self, end, line):
        running = end.start(line)
        self.started.append(running)
        return running

    def start_server(self, line, port):
        server = self.run(self.server, f"{line} -p {port}")
        server.wait_listening(port, SECONDS_MAX)
        return server

    def start_client(self, line, port):
        """line has {address} where the server's goes; {address6} for IPv6."""
        line = line.format(address=self.server.address, address6=self.server.address6)
        return self.run(self.client, f"{line} -p {port}")

    def pair(self, port, server_line, client_line):
        """Both end well; what each printed, server first."""
        server = self.start_server(server_line, port)
        client = self.start_client(client_line, port)
        for each in (client, server):
            assert each.wait_exit(SECONDS_MAX) == 0, self.report()
        return server.output(), client.output()

    def rping(self, port, options="-S 1000", count=10):
        """Pings that both ends verify. rping ends with status 0 even when it is disconnected early: its
        lines are counted."""
        line = f"-V -v -C {count} {options}"
        server, client = self.pair(port, f"rping -s {line}", f"rping -c -a {{address}} {line}")
        assert client.count("ping data: ") == server.count("server ping data: ") == count, self.report()

    def perftest(self, port, name, options):
        """The sizes that the client measured."""
        line = f"{name} -R -F {options}"
        _, client = self.pair(port, line, line + " {address}")
        return [int(size) for size in re.findall(PERFTEST_ROW, client)]

    def report(self):
        return "\n".join(each.report() for each in self.started)


def octets(link):
    """What went over the veth pair so far, both ways."""
    with open(f"/proc/{link.server.namespace.holder.pid}/net/dev", encoding="ascii") as file:
        numbers = next(row.split(":")[1].split() for row in file if f"{INTERFACE}:" in row)
    return int(numbers[0]) + int(numbers[8])


def wait_for_traffic(link):
    wanted = octets(link) + OCTETS_BEFORE
    wait_until(lambda: octets(link) >= wanted, "traffic")
