# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A network namespace of this machine, with a bridge and on it a tap for each guest. The host's end is the bridge."""

import subprocess

import beds
import capture

BRIDGE = "bridge0"
MTU_MAX = 9000
PREFIX_LENGTHS = (24, 64)
# The host's, then each guest's: IPv4 and IPv6.
ADDRESSES = (*beds.ENDS, ("192.0.2.3", "fd00:aa::3"))


class Network:
    def __init__(self):
        self.namespace = beds.Namespace()
        self.into = self.namespace.into
        self.taps = []
        try:
            self.ip("link set lo up", f"link add {BRIDGE} mtu {MTU_MAX} type bridge mcast_snooping 0",
                    *address_lines(0, BRIDGE), f"link set {BRIDGE} up gso_max_segs 1")
        except BaseException:
            self.close()
            raise

    def ip(self, *lines):
        subprocess.run([*self.into, "ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)

    def add_tap(self, number):
        """Its name. What is captured on it is what a wire would carry: no segments joined for the way."""
        tap = f"tap{number}"
        self.ip(f"tuntap add {tap} mode tap", f"link set {tap} master {BRIDGE} mtu {MTU_MAX} up gso_max_segs 1")
        self.taps.append(tap)
        return tap

    def remove_tap(self, tap):
        self.ip(f"link del {tap}")
        self.taps.remove(tap)

    def set_mtu(self, mtu):
        self.ip(*(f"link set {each} mtu {mtu}" for each in (*self.taps, BRIDGE)))

    def octets(self, tap):
        """What went over it so far, both ways."""
        with open(f"/proc/{self.namespace.holder.pid}/net/dev", encoding="ascii") as file:
            numbers = next(row.split(":")[1].split() for row in file if f"{tap}:" in row)
        return int(numbers[0]) + int(numbers[8])

    def capture(self, path, port):
        """Of this port, on the first guest's tap. The datagram that ends it goes there."""
        return capture.Capture(path, self.taps[0], ADDRESSES[1][0], port, self.into)

    def close(self):
        self.namespace.close()


def address_lines(number, interface):
    """Lines for `ip -batch`."""
    return [f"addr add {address}/{length} dev {interface}" + (" nodad" if ":" in address else "")
            for address, length in zip(ADDRESSES[number], PREFIX_LENGTHS)]
