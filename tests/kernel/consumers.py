# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel's own users of RDMA devices: their modules, a wire for those that know only the first network namespace, links
that lose packets, and fio, which writes blocks of which each says where it belongs, and verifies them."""

import json
import os
import pathlib
import subprocess

import beds
import ends
import program

TREE = pathlib.Path(os.environ["ANYWARP_KERNEL_TREE"])
CONFIGFS = pathlib.Path("/sys/kernel/config")
MB = 1 << 20
BULK_MB = int(os.environ.get("ANYWARP_MB", "1024"))
BULK = BULK_MB * MB
SECONDS_MAX = 900  # 1 GB under KASAN, over a link that loses packets
LOSS_PERCENT = 1
QUEUED = ("--direct=1", "--ioengine=libaio", "--iodepth=16")
LOST_MIN = max(BULK_MB // 10, 1)  # what makes a link one that loses packets
# Of the local table and of the two ways over the wire; the least comes first.
ARRIVING, WAY, LOCAL = 10, 20, 100


def load(kernel, name, *parameters):
    """A module of the kernel's tree, behind those that it needs."""
    if kernel.has(name.replace("-", "_")):
        return
    path = next(path for line in TREE.joinpath("modules.order").read_text(encoding="ascii").splitlines()
                if (path := TREE / line).stem.replace("-", "_") == name.replace("-", "_"))
    path = path.with_suffix(".ko")
    for need in ends.run(["modinfo", "-F", "depends", path]).strip().split(","):
        if need:
            load(kernel, need)
    ends.run(["insmod", path, *parameters])


def unload(kernel, *names):
    for name in names:
        kernel.unload_if_there(name)


def write(path, value):
    path.write_text(str(value), encoding="ascii")


def mount_configfs():
    if not os.path.ismount(CONFIGFS):
        ends.run(["mount", "-t", "configfs", "none", CONFIGFS])


class Wire:
    """Two interfaces of this network namespace, with a device each where there is a link type. What goes from one's address to
    the other's goes over the wire: the local table, which would have it go through the loopback, is asked behind the routes."""

    def __init__(self, link_type, mtu=ends.MTU_MAX):
        self.link_type = link_type
        self.interfaces = ("wire0", "wire1")
        self.devices = (f"{link_type}_wire0", f"{link_type}_wire1")
        self.addresses = tuple(address for address, _ in beds.ENDS)
        self.into = []
        first, second = self.interfaces
        self.ip(f"link add {first} mtu {mtu} type veth peer name {second} mtu {mtu}",
                *(f"addr add {address}/32 dev {interface}"
                  for address, interface in zip(self.addresses, self.interfaces)),
                *(f"link set {interface} up" for interface in self.interfaces))
        for interface in self.interfaces:
            write(pathlib.Path("/proc/sys/net/ipv4/conf", interface, "accept_local"), 1)
        self.ip(*self.rules("add"), f"rule add pref {LOCAL} lookup local", "rule del pref 0",
                *(f"route add {far}/32 dev {interface} src {near} table {WAY + number}"
                  for number, (interface, near, far) in enumerate(zip(self.interfaces, self.addresses, self.addresses[::-1]))))
        for number in range(2) if link_type else ():
            self.add_device(number)

    def ip(self, *lines):
        done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, timeout=ends.SECONDS_MAX, check=False)
        assert done.returncode == 0, f"{lines}: {done.stderr}"

    def rules(self, verb):
        return [f"rule {verb} pref {ARRIVING + number} iif {interface} lookup local"
                for number, interface in enumerate(self.interfaces)] + \
               [f"rule {verb} pref {WAY + number} to {far} lookup {WAY + number}"
                for number, far in enumerate(self.addresses[::-1])]

    def add_device(self, number):
        ends.run(["rdma", "link", "add", self.devices[number], "type", self.link_type, "netdev", self.interfaces[number]])

    @staticmethod
    def delete_device(name):
        ends.run(["rdma", "link", "delete", name])

    def octets(self):
        """What came to either end so far."""
        return sum(int(pathlib.Path("/sys/class/net", name, "statistics/rx_bytes").read_text(encoding="ascii"))
                   for name in self.interfaces)

    def wait_for_traffic(self):
        wanted = self.octets() + ends.OCTETS_BEFORE
        ends.wait_until(lambda: self.octets() >= wanted, "traffic")

    def loss(self):
        return Loss(*(([], interface) for interface in self.interfaces))

    def close(self):
        self.ip("rule add pref 0 lookup local", f"rule del pref {LOCAL}", *self.rules("del"),
                f"link delete {self.interfaces[0]}")


class Loss:
    """A context in which these interfaces, each (prefix, name), lose packets; each of them, not of the bundles that a veth
    pair carries otherwise."""

    def __init__(self, *interfaces):
        self.interfaces = interfaces

    def __enter__(self):
        for into, name in self.interfaces:
            ends.run([*into, "ip", "link", "set", name, "gso_max_segs", "1"])
            ends.run([*into, "tc", "qdisc", "add", "dev", name, "root", "netem", "limit", "100000", "loss",
                      f"{LOSS_PERCENT}%"])
        return self

    def lost(self):
        return sum(json.loads(ends.run([*into, "tc", "-j", "-s", "qdisc", "show", "dev", name]))[0]["drops"]
                   for into, name in self.interfaces)

    def __exit__(self, *_):
        for into, name in self.interfaces:
            ends.run([*into, "tc", "qdisc", "delete", "dev", name, "root"])
            ends.run([*into, "ip", "link", "set", name, "gso_max_segs", "65535"])


def fio_line(path, rw, size, *options):
    return ["fio", "--name=consumer", f"--filename={path}", f"--rw={rw}", f"--size={size}", "--verify=crc32c",
            "--verify_fatal=1", "--output-format=terse", "--randseed=1", *options]


def fio(path, rw, size, *options):
    done = subprocess.run(fio_line(path, rw, size, *options), cwd="/run", capture_output=True, text=True, timeout=SECONDS_MAX,
                          check=False)
    assert done.returncode == 0, f"fio {rw} {path} {options}: status {done.returncode}\n{done.stdout}{done.stderr}"


def start_fio(path, *options):
    """Without an end: reads and writes of all sizes. No error is its end. A process of fio's for the job would be in a session of
    its own, and go on when this one is killed: it is a thread."""
    return program.Program(fio_line(path, "randrw", 64 * MB, *QUEUED, "--thread", "--bsrange=4k-256k", "--time_based",
                                    f"--runtime={SECONDS_MAX}", *options))


def verify_disk(wire, path, size):
    """What is written crosses the wire, and what is read."""
    for rw in ("write", "read"):
        before = wire.octets()
        fio(path, rw, size, "--bs=1m", "--do_verify=0", *QUEUED)
        assert wire.octets() - before >= size
