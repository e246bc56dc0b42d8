# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The two ends of every test here: Debian's programs on our libraries on the host, or on the device of a guest's
kernel. A Link says which of the two is the server."""

import collections
import re
import shlex
import subprocess
import tempfile

import guest as guests
import network
import program

SECONDS_MAX = 120
# A row of perftest's: size and iterations, then times. These are infinite when perftest could not find
# its processor's clock rate, as on a loaded machine, so that it divides by zero (docs/interop.md).
PERFTEST_ROW = r"(?m)^ +(\d+) +\d+ +(?:[\d.]+|inf) "
# What an end may be: our libraries, our module, Linux's siw.
USER, KMOD, SIW = "user", "kmod", "siw"
# Where siw is refused; each with a port of its own.
ATTEMPTS, PORTS_APART = 3, 1000
LINK_TYPES = {KMOD: "anywarp", SIW: "siw"}


class HostEnd:
    kind = USER
    address, address6 = network.ADDRESSES[0]

    def __init__(self, joined, build):
        self.into, self.build = joined.into, build
        self.folder = tempfile.gettempdir()
        self.policy = {}

    def ask_for(self, **policy):
        """For the connections of programs started from then on, by the names of ANYWARP_MPA."""
        self.policy.update(policy)

    def reset(self):
        self.policy.clear()

    def start(self, line):
        mpa = ",".join(f"{name}={told(value)}" for name, value in self.policy.items())
        return program.Program([*self.into, "env", f"LD_LIBRARY_PATH={self.build}/lib", "ANYWARP_LOG=info",
                                f"ANYWARP_MPA={mpa}", "stdbuf", "-oL", *shlex.split(line)])

    def shell(self, script):
        """What a script prints."""
        return subprocess.run([*self.into, "sh", "-c", script], check=True, capture_output=True, text=True).stdout


def told(value):
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class GuestEnd:
    """parameters: the module's, by the names that HostEnd has for them, and what they are when a test begins."""

    def __init__(self, guest):
        self.guest, self.folder = guest, guests.FOLDER
        self.address, self.address6 = guest.address, guest.address6
        self.start, self.shell = guest.start, guest.exec
        self.changed = False

    def ask_for(self, **policy):
        self.changed = True
        self.guest.set_parameters(**{self.names.get(name, name): value for name, value in policy.items()})

    def reset(self):
        if self.changed:
            self.guest.set_parameters(**self.defaults)
        self.changed = False


class KmodEnd(GuestEnd):
    kind = KMOD
    names = {}
    defaults = {"crc": True, "p2p": True, "markers": False, "extensions": False, "revision": 2, "large_fpdus": True}


class SiwEnd(GuestEnd):
    kind = SIW
    names = {"crc": "mpa_crc_required", "p2p": "peer_to_peer", "revision": "mpa_version"}
    # What Linux's has; the last four are build-siw's.
    defaults = {"mpa_crc_required": False, "mpa_crc_strict": False, "mpa_version": 2, "peer_to_peer": False,
                "rtr_type": 0x00C0, "look_again": True, "ready_first": True, "in_order": True,
                "flush_late": True}


def is_farewell_lost(end, said):
    """siw completes its last Send with an error when the peer has answered and closed (by a FIN)
    before siw gets to complete it. All measuring is over by then."""
    return end.kind == SIW and "Failed to close connection between" in said


def is_refused_once(end, said):
    """perftest's client connects while its server begins to listen. Where that is refused, siw tells the program at once
    (docs/interop.md), and the program dies of it."""
    return end.kind == SIW and "ERRNO: Connection refused" in said


def is_rping_race(end, said):
    """rping destroys its event channel while a thread of its own reads it. On rdma-core, which both kernels' ends have,
    that thread may see it first, and then says so and ends the program with an error; on our library it waits."""
    return end.kind != USER and "rdma_get_cm_event: Bad file descriptor" in said


def reset_count(end):
    """Connections that this end's kernel has reset since octets came for a socket that was closed. What
    it had still to send on them is lost."""
    names, counts = (line.split() for line in
                     end.shell("grep ^TcpExt: /proc/net/netstat").splitlines())
    told_counts = dict(zip(names[1:], map(int, counts[1:])))
    return told_counts["TCPAbortOnData"] + told_counts["TCPAbortOnClose"]


class Link(collections.namedtuple("Link", "server client started")):
    """started are the programs of one test, to be ended when it is over."""

    def start_server(self, line, port):
        server = self.run(self.server, f"{line} -p {port}")
        server.wait_listening(port, SECONDS_MAX)
        return server

    def start_client(self, line, port):
        """line has {address} where the server's goes; {address6} for IPv6."""
        line = line.format(address=self.server.address, address6=self.server.address6)
        return self.run(self.client, f"{line} -p {port}")

    def run(self, end, line):
        running = end.start(line)
        self.started.append(running)
        return running

    def pair(self, port, server_line, client_line):
        """Both end well; what each printed, server first."""
        server = self.start_server(server_line, port)
        client = self.start_client(client_line, port)
        self.wait_rping(self.client, client)
        self.wait_rping(self.server, server)
        return server.output(), client.output()

    def wait_rping(self, end, running):
        status = running.wait_exit(SECONDS_MAX)
        assert status == 0 or is_rping_race(end, running.output()), self.report()

    def perftest(self, port, name, options):
        """The sizes that the client measured."""
        line = f"{name} -R -F {options}"
        for attempt in range(ATTEMPTS):
            server = self.start_server(line, port + attempt * PORTS_APART)
            client = self.start_client(line + " {address}", port + attempt * PORTS_APART)
            status = client.wait_exit(SECONDS_MAX)
            said = client.output()
            if not is_refused_once(self.client, said):
                break
            server.kill()
        assert status == 0 or is_farewell_lost(self.client, said), self.report()
        assert server.wait_exit(SECONDS_MAX) == 0, self.report()
        return [int(size) for size in re.findall(PERFTEST_ROW, said)]

    def rping(self, port, options="-S 1000", count=10):
        """Pings that both ends verify. rping ends with status 0 even when it is disconnected early:
        its lines are counted."""
        line = f"-V -v -C {count} {options}"
        server, client = self.pair(port, f"rping -s {line}", f"rping -c -a {{address}} {line}")
        assert client.count("ping data: ") == server.count("server ping data: ") == count, self.report()

    def report(self):
        return "\n".join(each.report() for each in self.started)
