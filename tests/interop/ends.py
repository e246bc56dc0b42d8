# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The two ends of every test here: Debian's programs on our libraries on the host, the very same
programs on siw in the guest. A Link says which of the two is the server."""

import collections
import re
import shlex
import subprocess

import capture
import guest as guests
import program

# Emulation on a loaded machine: a wait that ends badly is rare and may cost this much.
SECONDS_MAX = 240
# A row of perftest's: size and iterations, then times. These are infinite when perftest could not find
# its processor's clock rate, as on a loaded machine, so that it divides by zero (docs/interop.md).
PERFTEST_ROW = r"(?m)^ +(\d+) +\d+ +(?:[\d.]+|inf) "


class HostEnd:
    """mpa is what ANYWARP_MPA says to the programs started from then on."""

    address, address6 = guests.HOST

    def __init__(self, guest, build):
        self.into, self.build = guest.network.into, build
        self.mpa = ""

    def start(self, line):
        return program.Program([*self.into, "env", f"LD_LIBRARY_PATH={self.build}/lib",
                                "ANYWARP_LOG=info", f"ANYWARP_MPA={self.mpa}", "stdbuf", "-oL",
                                *shlex.split(line)])

    def shell(self, script):
        """What a script without use of the network prints."""
        return subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout

    def capture(self, path, port):
        """Of this port on the tap. The datagram that ends it goes to the guest."""
        return capture.Capture(path, "tap0", guests.GUEST[0], port, self.into)


class GuestEnd:
    address, address6 = guests.GUEST

    def __init__(self, guest):
        self.guest = guest

    def start(self, line):
        return self.guest.start(line)

    def shell(self, script):
        return self.guest.exec(script)


def is_farewell_lost(end, said):
    """siw completes its last Send with an error when the peer has answered and closed (by a FIN)
    before siw gets to complete it. All measuring is over by then."""
    return isinstance(end, GuestEnd) and "Failed to close connection between" in said


def is_rping_race(end, said):
    """rping destroys its event channel while a thread of its own reads it. On rdma-core that thread
    may see it first, and then says so and ends the program with an error; on our library it waits."""
    return isinstance(end, GuestEnd) and "rdma_get_cm_event: Bad file descriptor" in said


def reset_count(end):
    """Connections that this end's kernel has reset since octets came for a socket that was closed. What
    it had still to send on them is lost."""
    names, counts = (line.split() for line in
                     end.shell("grep ^TcpExt: /proc/net/netstat").splitlines())
    told = dict(zip(names[1:], map(int, counts[1:])))
    return told["TCPAbortOnData"] + told["TCPAbortOnClose"]


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

    @staticmethod
    def wait_rping(end, running):
        status = running.wait_exit(SECONDS_MAX)
        assert status == 0 or is_rping_race(end, running.output()), running.report()

    def perftest(self, port, name, options):
        """The sizes that the client measured."""
        line = f"{name} -R -F {options}"
        server = self.start_server(line, port)
        client = self.start_client(line + " {address}", port)
        status = client.wait_exit(SECONDS_MAX)
        said = client.output()
        assert status == 0 or is_farewell_lost(self.client, said), client.report()
        assert server.wait_exit(SECONDS_MAX) == 0, server.report()
        return [int(size) for size in re.findall(PERFTEST_ROW, said)]

    def rping(self, port, options, count=10):
        """Pings that both ends verify. rping ends with status 0 even when it is disconnected early:
        its lines are counted."""
        line = f"-V -v -C {count} {options}"
        server, client = self.pair(port, f"rping -s {line}", f"rping -c -a {{address}} {line}")
        assert client.count("ping data: ") == server.count("server ping data: ") == count
