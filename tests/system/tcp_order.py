# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Writes a capture anew as TCP delivered it: each octet once and in order. A busy machine reorders
and repeats segments, which tshark's dissectors would count as malformed. No payload is touched."""

import collections
import struct

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)  # 101: bare IP
LOCALHOST = bytes((127, 0, 0, 1))
SYN, ACK = 0x02, 0x10
FIELDS = ("tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.flags", "tcp.seq", "tcp.payload")

# source and destination are ports; sequence is relative to the connection's start.
Packet = collections.namedtuple("Packet", "source destination flags sequence payload")


class Direction:
    """One direction of one connection: gives out what has become contiguous."""

    def __init__(self):
        self.next = 1
        self.waiting = {}

    def take(self, packet):
        self.waiting[packet.sequence] = max(packet, self.waiting.get(packet.sequence, packet),
                                            key=lambda each: len(each.payload))
        while True:
            found = [first for first in self.waiting if first <= self.next]
            if not found:
                return
            packet = self.waiting.pop(min(found))
            fresh = packet.payload[self.next - packet.sequence:]
            if fresh:
                yield packet._replace(sequence=self.next, payload=fresh)
                self.next += len(fresh)


def packets(lines):
    """Of tshark's lines of FIELDS: the packets in the order in which TCP could deliver them."""
    directions = collections.defaultdict(Direction)
    for line in lines:
        stream, source, destination, flags, sequence, payload = line.split("\t")
        packet = Packet(int(source), int(destination), int(flags, 0) & (SYN | ACK),
                        int(sequence), bytes.fromhex(payload.replace(":", "")))
        if packet.flags & SYN:
            yield packet
        elif packet.payload:
            yield from directions[stream, source].take(packet)


def octets_of(packet):
    tcp = struct.pack(">HHIIBBHHH", packet.source, packet.destination, packet.sequence, 0, 5 << 4,
                      packet.flags, 65535, 0, 0) + packet.payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, LOCALHOST, LOCALHOST)
    return ip + tcp


def write(path, ordered):
    with open(path, "wb") as file:
        file.write(PCAP_HEADER)
        for number, packet in enumerate(ordered):
            octets = octets_of(packet)
            file.write(struct.pack("<IIII", number // 1000000, number % 1000000,
                                   len(octets), len(octets)) + octets)
