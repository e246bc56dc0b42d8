# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A second host for the client's end of a test: a network namespace with a hostname of its own, joined by a veth pair to the one
in which the tests run (with-net), whose interface becomes the pair's other end."""

import beds

INTERFACE = "aw0"
# As hosts have them: a link-local address beside the others.
ADDRESSES = [(f"{ipv4}/24", f"{ipv6}/64 nodad", f"fe80::{number}/64 nodad") for number, (ipv4, ipv6) in enumerate(beds.ENDS, 1)]
ADDRESS = beds.ENDS[1][0]
NAME = "far-host"


class FarHost:
    """Its programs see the files, processes and users of this one."""

    def __init__(self):
        self.namespace = beds.Namespace(kinds=("net", "uts"))
        self.into = self.namespace.into
        self.network = self.namespace.network
        self.proc_net = f"/proc/{self.namespace.holder.pid}/net"
        try:
            self.join()
        except BaseException:
            self.close()
            raise

    def join(self):
        beds.run([*self.into, "hostname", NAME])
        beds.run(["ip", "link", "del", INTERFACE])
        beds.run(["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns",
                  str(self.namespace.holder.pid)])
        self.namespace.ip("link set lo up")
        for into, addresses in (([], ADDRESSES[0]), (self.into, ADDRESSES[1])):
            beds.run([*into, "ip", "link", "set", INTERFACE, "addrgenmode", "none", "up"])
            for address in addresses:
                beds.run([*into, "ip", "addr", "add", *address.split(), "dev", INTERFACE])

    def close(self):
        self.namespace.close()
