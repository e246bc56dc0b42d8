# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A long way: two network namespaces, and between them bench-link, a process that holds the ends of the link (TUN devices),
keeps each packet for a while and loses some. The kernel needs no queueing discipline for it."""

import os
import time

import beds
import pair

ROUND_TRIP_MS, LOSS_PERCENT, MTU = 10, 1, 1500
DEVICE = "wan0"
NAME = f"link of {ROUND_TRIP_MS} ms and {LOSS_PERCENT} % loss"
READY_SECONDS = 10


class WanBed:
    """A context manager that gives the Bed."""

    def __init__(self, workers):
        self.path = os.path.join(workers, "bench-link")
        self.namespaces, self.link = [], None

    def __enter__(self):
        if not os.access(self.path, os.X_OK):
            raise beds.NotAllowed(f"no program {self.path}: build it ('./dev build') or install anywarp again")
        try:
            return self.build()
        except (beds.NotAllowed, pair.Failure, OSError) as error:
            self.__exit__()
            raise beds.NotAllowed(f"no link between network namespaces here: {error}") from error

    def build(self):
        server = self.add_namespace(None)
        client = self.add_namespace(server)
        # From within the first, which may be in a user namespace of its own; the second is named by the process that holds it.
        self.link = pair.End("bench-link", [*server.into, self.path, DEVICE, f"/proc/{client.holder.pid}/ns/net",
                                            str(ROUND_TRIP_MS * 1000 // 2), str(LOSS_PERCENT * 10000)], dict(os.environ))
        self.link.wait_ready(pair.Pair(None, None, None, None, "ready", None, None), time.monotonic() + READY_SECONDS)
        for end, (address, _) in zip(self.namespaces, beds.ENDS):
            end.ip("link set lo up")
            end.ip(f"addr add {address}/24 dev {DEVICE}")
            end.ip(f"link set {DEVICE} mtu {MTU} txqueuelen 1000 up")
        return beds.Bed(NAME, *beds.ENDS[0], server.into, client.into)

    def add_namespace(self, outer):
        self.namespaces.append(beds.Namespace(outer))
        return self.namespaces[-1]

    def __exit__(self, *_):
        if self.link:
            self.link.close()
        while self.namespaces:
            self.namespaces.pop().close()
