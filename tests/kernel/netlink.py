# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What ip(8) and rdma(8) ask of the kernel, and insmod(8), without starting a process, which takes seconds under a
kernel that checks everything. Each request is one system call, of whichever thread makes it."""

import ctypes
import errno
import itertools
import os
import socket
import struct
import threading

NETLINK_RDMA = 20
NLDEV = 5 << 10
NLDEV_GET, NLDEV_NEWLINK, NLDEV_DELLINK = NLDEV + 1, NLDEV + 3, NLDEV + 4
DEV_INDEX, DEV_NAME, NDEV_NAME, LINK_TYPE = 1, 2, 51, 65
RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR = 16, 17, 20, 21
IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_PID = 3, 4, 18, 19
INFO_KIND, INFO_DATA, VETH_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFF_UP = 1
REQUEST, ACK, DUMP, EXCL, CREATE = 1, 4, 0x300, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
HEADER = struct.Struct("=IHHII")
CLONE_NEWNET = 0x40000000
PREFIX_BITS = 24
SYS_DELETE_MODULE, SYS_FINIT_MODULE = 176, 313  # x86_64
LIBC = ctypes.CDLL(None, use_errno=True)


def attribute(kind, value):
    if isinstance(value, str):
        value = value.encode() + b"\0"
    elif isinstance(value, int):
        value = struct.pack("=I", value)
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(octets):
    """Kind and value of each in turn."""
    while len(octets) >= 4:
        length, kind = struct.unpack_from("=HH", octets)
        yield kind & 0x3fff, octets[4:length]
        octets = octets[(length + 3) & ~3:]


def link_header(index=0, flags=0, change=0):
    return struct.pack("=BxHiII", 0, 0, index, flags, change)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def load_module(path):
    with open(path, "rb") as file:
        checked(LIBC.syscall(SYS_FINIT_MODULE, file.fileno(), b"", 0))


def unload_module(name):
    checked(LIBC.syscall(SYS_DELETE_MODULE, name.encode(), os.O_NONBLOCK))


def enter_namespace(path):
    """The calling thread, for good."""
    with open(path, "rb") as namespace:
        checked(LIBC.setns(namespace.fileno(), CLONE_NEWNET))


class Netlink:
    """Requests to the network namespace of a process. They may come from several threads."""

    def __init__(self, pid):
        self.path, self.lock = f"/proc/{pid}/ns/net", threading.Lock()
        self.numbers = itertools.count(1)
        self.local = threading.local()

    def socket(self, family):
        """Each thread's own, so that none waits for another one's request."""
        if not hasattr(self.local, "sockets"):
            self.local.sockets = {}
        if family not in self.local.sockets:
            with self.lock:
                enter_namespace(self.path)
                one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
                enter_namespace("/proc/1/ns/net")
            self.local.sockets[family] = one
        return self.local.sockets[family]

    def ask(self, family, kind, body, flags=ACK):
        """The messages of the answer, as bodies; OSError is the kernel's. An answer that could not be read is still there."""
        end, asked = self.socket(family), next(self.numbers)
        end.send(HEADER.pack(HEADER.size + len(body), kind, REQUEST | flags, asked, 0) + body)
        bodies = []
        while True:
            octets = end.recv(1 << 16)
            while octets:
                length, kind, _, answered, _ = HEADER.unpack_from(octets)
                body, octets = octets[HEADER.size:length], octets[(length + 3) & ~3:]
                if answered != asked:
                    continue
                if kind == NLMSG_ERROR:
                    number = -struct.unpack_from("=i", body)[0]
                    if number:
                        raise OSError(number, os.strerror(number))
                    return bodies
                if kind == NLMSG_DONE:
                    return bodies
                bodies.append(body)

    def route(self, kind, body, flags=ACK):
        return self.ask(socket.NETLINK_ROUTE, kind, body, flags)

    def index_of(self, interface):
        """Of the interface's name; 0: there is none."""
        try:
            body, = self.route(18, link_header() + attribute(IFLA_IFNAME, interface))[:1] or [b""]
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise
            return 0
        return struct.unpack_from("=BxHi", body)[2] if body else 0

    def add_veth(self, name, peer_pid):
        """Of a pair; the other one has the same name in the namespace of that process."""
        peer = attribute(VETH_PEER, link_header() + attribute(IFLA_IFNAME, name) + attribute(IFLA_NET_NS_PID, peer_pid))
        info = attribute(INFO_KIND, "veth") + attribute(INFO_DATA, peer)
        self.route(RTM_NEWLINK, link_header() + attribute(IFLA_IFNAME, name) + attribute(IFLA_LINKINFO, info),
                   ACK | EXCL | CREATE)

    def delete_link(self, name):
        self.route(RTM_DELLINK, link_header() + attribute(IFLA_IFNAME, name))

    def set_link(self, name, up):
        self.route(RTM_NEWLINK, link_header(0, up * IFF_UP, IFF_UP) + attribute(IFLA_IFNAME, name))

    def set_mtu(self, name, mtu):
        self.route(RTM_NEWLINK, link_header() + attribute(IFLA_IFNAME, name) + attribute(IFLA_MTU, mtu))

    def change_address(self, kind, name, address):
        octets = socket.inet_aton(address)
        header = struct.pack("=BBBBI", socket.AF_INET, PREFIX_BITS, 0, 0, self.index_of(name))
        self.route(kind, header + attribute(IFA_LOCAL, octets) + attribute(IFA_ADDRESS, octets), ACK | CREATE)

    def add_device(self, name, link_type, interface):
        self.ask(NETLINK_RDMA, NLDEV_NEWLINK,
                 attribute(DEV_NAME, name) + attribute(LINK_TYPE, link_type) + attribute(NDEV_NAME, interface))

    def devices(self):
        """Their indexes by name."""
        found = {}
        for body in self.ask(NETLINK_RDMA, NLDEV_GET, b"", DUMP):
            values = dict(attributes(body))
            found[values[DEV_NAME].rstrip(b"\0").decode()] = struct.unpack("=I", values[DEV_INDEX])[0]
        return found

    def delete_device(self, name):
        index = self.devices().get(name)
        if index is None:
            raise OSError(errno.ENODEV, f"no device {name}")
        try:
            self.ask(NETLINK_RDMA, NLDEV_DELLINK, attribute(DEV_INDEX, index))
        except OSError as error:
            # So the kernel calls a device that has gone since.
            if error.errno == errno.EINVAL and self.devices().get(name) != index:
                raise OSError(errno.ENODEV, f"no device {name}") from error
            raise
