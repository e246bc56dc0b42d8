# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where two programs meet: loopback, or two network namespaces with a veth pair between them.
A namespace lives as long as the process that holds it, and that ends with us: nothing is named,
so nothing can clash or stay behind."""

import collections
import contextlib
import ctypes
import os
import subprocess

# The prefixes put a program into its end of the bed; name is for people.
Bed = collections.namedtuple("Bed", "name address address6 server_prefix client_prefix")

LOOPBACK = Bed("loopback", "127.0.0.1", "::1", [], [])
# RFC 5737 and RFC 4193 addresses: they mean nothing outside.
ENDS = (("192.0.2.1", "fd00:aa::1"), ("192.0.2.2", "fd00:aa::2"))
ABSENT_NEIGHBOUR, NO_ROUTE = "192.0.2.77", "198.51.100.1"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


class NotAllowed(Exception):
    """This machine does not let us make network namespaces; the text says why."""


def enter_network(file):
    if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns {file.name}")


class Namespace:
    """A network namespace, held by a process that waits for our end. An inner one is made under
    the user namespace of the outer, so that a veth pair may join the two. Further kinds of namespaces go with it."""

    def __init__(self, outer=None, kinds=("net",)):
        as_user = os.geteuid() != 0
        start, self.into = ([program, *(f"--{kind}" for kind in kinds)] for program in ("unshare", "nsenter"))
        if as_user:
            self.into += ["--user", "--preserve-credentials"]
        if outer:
            start = outer.into + start
        elif as_user:
            start.append("--map-root-user")
        self.holder = subprocess.Popen([*start, "cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.into += ["--target", str(self.holder.pid)]
        self.wait_for_holder()

    def wait_for_holder(self):
        try:
            self.holder.stdin.write(b"ready\n")
            self.holder.stdin.flush()
            answer = self.holder.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            why = self.holder.stderr.read().decode().strip()
            self.close()
            raise NotAllowed(why or "unshare failed")

    def ip(self, line):
        run(self.into + ["ip"] + line.split())

    @contextlib.contextmanager
    def network(self):
        """Sockets that this thread makes meanwhile are this namespace's."""
        with open("/proc/thread-self/ns/net", "rb") as near, open(f"/proc/{self.holder.pid}/ns/net", "rb") as far:
            enter_network(far)
            try:
                yield
            finally:
                enter_network(near)

    def close(self):
        for pipe in (self.holder.stdin, self.holder.stdout, self.holder.stderr):
            pipe.close()
        self.holder.wait()


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(argv)}: {done.stderr.strip()}")


class VethBed:
    """A context manager that gives the Bed of two namespaces joined at one MTU."""

    def __init__(self, mtu, one_segment=False):
        """one_segment: what is captured on the veth is what a wire would carry."""
        self.mtu = mtu
        self.one_segment = one_segment
        self.ends = []

    def __enter__(self):
        try:
            return self.build()
        except (NotAllowed, OSError) as error:
            self.__exit__()
            raise NotAllowed(f"no network namespaces here: {error}") from error

    def build(self):
        server = self.new_end(None)
        client = self.new_end(server)
        server.ip(f"link add veth0 mtu {self.mtu} type veth "
                  f"peer name veth0 mtu {self.mtu} netns {client.holder.pid}")
        for end, (address, address6) in zip(self.ends, ENDS):
            end.ip("link set lo up")
            end.ip(f"addr add {address}/24 dev veth0")
            end.ip(f"addr add {address6}/64 dev veth0 nodad")
            end.ip("link set veth0 up" + (" gso_max_segs 1" if self.one_segment else ""))
        return Bed(f"veth, MTU {self.mtu}", *ENDS[0], server.into, client.into)

    def new_end(self, outer):
        end = Namespace(outer)
        self.ends.append(end)
        return end

    def __exit__(self, *_):
        while self.ends:
            self.ends.pop().close()
