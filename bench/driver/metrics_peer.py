# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""metrics_peer.py ADDRESS PORT METRICS: tells a gmond, by its UDP port, all metrics of the file, as gmetric does one of them."""

import json
import socket
import struct
import sys
import time

# A datagram may be lost, and gmond reads them slowly.
REPEATED, PAUSE_EVERY, PAUSE_SECONDS = 3, 10, 0.002
# Ganglia's datagrams, in XDR: what a metric is, and what it is now.
METADATA, VALUE_AS_TEXT, BOTH_SLOPES, VALID_SECONDS, KEPT_SECONDS = 128, 133, 3, 3600, 0


def text(value):
    octets = value.encode()
    return struct.pack(">I", len(octets)) + octets + bytes(-len(octets) % 4)


def datagrams(name, value):
    """What gmetric would send."""
    head = text("bench") + text(name) + struct.pack(">I", 0)
    meta = (struct.pack(">I", METADATA) + head + text("uint32") + text(name) + text("things") +
            struct.pack(">IIII", BOTH_SLOPES, VALID_SECONDS, KEPT_SECONDS, 0))
    return meta, struct.pack(">I", VALUE_AS_TEXT) + head + text("%s") + text(value)


def main(address, port, path):
    with open(path, encoding="utf-8") as file:
        metrics = json.load(file)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        for _ in range(REPEATED):
            for number, (name, value) in enumerate(metrics.items()):
                for datagram in datagrams(name, value):
                    to.sendto(datagram, (address, int(port)))
                if number % PAUSE_EVERY == 0:
                    time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
