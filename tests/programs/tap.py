# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What went over the loopback, seen by the kernel and not by our library: who opened TCP connections
to which port, on which of them MPA Start frames (RFC 5044 7.1) were the first octets, and which carried any octet at all, by their
sequence numbers. A filter in the kernel lets nothing else through, so a tap costs a transfer next to nothing."""

import collections
import ctypes
import socket
import struct

SO_ATTACH_FILTER, SO_RCVBUFFORCE = 26, 33
BUFFER_OCTETS = 32 * 2**20
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
REJECTED = 0x20  # of a Reply's flags
WAIT = 0x06  # the flags of a frame that is no Reply yet (docs/extensions.md)
KEY_OCTETS = 16
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
HELLO = b"\x16\x03\x01"  # TLS's ClientHello, as OpenSSL begins its record (RFC 8446 5.1)
# Of a Start frame of revision 1, what anywarp tells anywarp (src/xsock/stream/msg.h): two octets, then bits.
MAGIC_AT, MAGIC, RECORD = 24, b"aw", 0x04

# Of a packet from its IPv4 header on: a SYN, a FIN, a RST, or octets that begin with "MPA " or HELLO.
FILTER = (
    (0xB1, 0, 0, 0),            # x = length of the IPv4 header
    (0x50, 0, 0, 13),           # a = TCP's flags
    (0x54, 0, 0, FIN | SYN | RST),
    (0x15, 0, 9, 0),
    (0x50, 0, 0, 12),           # a = length of the TCP header
    (0x74, 0, 0, 2),
    (0x54, 0, 0, 0x3C),
    (0x0C, 0, 0, 0),            # x += a
    (0x07, 0, 0, 0),
    (0x40, 0, 0, 0),            # a = the first four octets behind it
    (0x15, 2, 0, 0x4D504120),
    (0x54, 0, 0, 0xFFFFFF00),
    (0x15, 0, 1, 0x16030100),
    (0x06, 0, 0, 256),
    (0x06, 0, 0, 0),
)

# The same of an IPv6 packet, of which a raw socket has all from the TCP header on.
FILTER6 = ((0x30, 0, 0, 13), FILTER[2], (0x15, 0, 8, 0), (0x30, 0, 0, 12), *FILTER[5:7], *FILTER[8:])

# How often each was seen on a listener's port; replies are those that accept, records the Requests of records; carried are the
# connections that have ended and carried octets; hellos are those that begin with TLS.
Seen = collections.namedtuple("Seen", "opened requests replies records carried hellos", defaults=(0, 0, 0, 0, 0, 0))


class NotAllowed(Exception):
    """Looking at packets needs CAP_NET_RAW."""


def assembled(lines):
    """A filter as struct sock_fprog, and what has to live as long as it."""
    code = b"".join(struct.pack("HBBI", *each) for each in lines)
    octets = ctypes.create_string_buffer(code, len(code))
    return struct.pack("HP", len(lines), ctypes.addressof(octets)), octets


def is_of_a_record(frame):
    bits_at = MAGIC_AT + len(MAGIC)
    return frame[MAGIC_AT:bits_at] == MAGIC and frame[bits_at] & RECORD


class Tap:
    """Sees one family's from its construction on."""

    def __init__(self, family=socket.AF_INET):
        try:
            self.socket = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
        except PermissionError as error:
            raise NotAllowed("no CAP_NET_RAW: nothing could prove what went over the wire") from error
        program, octets = assembled(FILTER if family == socket.AF_INET else FILTER6)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        del octets
        self.enlarge()
        self.socket.setblocking(False)
        self.opened, self.requests, self.replies, self.records, self.carried, self.hellos = ({}, {}, {}, {}, {}, {})
        self.begun = {}  # by source and target: the sequence number of the first octet
        self.finished = set()  # those that have sent a FIN

    def enlarge(self):
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_OCTETS)
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_OCTETS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def drain(self):
        """Takes in what waits. A packet is in the socket before the sender's call returns."""
        while True:
            try:
                packet = self.socket.recv(512)
            except BlockingIOError:
                return
            self.note(packet)

    def note(self, packet):
        """Counts connections, not packets: a retransmission is the same connection's."""
        tcp = packet[(packet[0] & 0xF) * 4:] if self.socket.family == socket.AF_INET else packet
        source, target = struct.unpack(">HH", tcp[:4])
        octets = tcp[(tcp[12] >> 4) * 4:]
        key = octets[:KEY_OCTETS]
        self.note_octets(source, target, tcp[13], struct.unpack(">I", tcp[4:8])[0], len(octets))
        if tcp[13] & (SYN | ACK) == SYN:
            self.opened.setdefault(target, set()).add((source, tcp[4:8]))
        elif octets.startswith(HELLO):
            self.hellos.setdefault(target, set()).add((source, tcp[4:8]))
        elif key == REQUEST:
            self.requests.setdefault(target, set()).add((source, tcp[4:8]))
            if is_of_a_record(octets):
                self.records.setdefault(target, set()).add((source, tcp[4:8]))
        elif key == REPLY and len(octets) > KEY_OCTETS and not octets[KEY_OCTETS] & REJECTED \
                and octets[KEY_OCTETS] != WAIT:
            self.replies.setdefault(source, set()).add((target, tcp[4:8]))

    def note_octets(self, source, target, flags, number, octets):
        """A FIN or RST stands behind what its end has sent, a RST behind that end's FIN too, which counts as an octet. Who was
        connected to, has a port of opened."""
        if flags & SYN:
            self.begun[source, target] = number + 1
            self.finished.discard((source, target))
        elif flags & (FIN | RST) and {(source, target), (target, source)} <= self.begun.keys():
            sent = (number + octets - self.begun[source, target] - (flags & RST and (source, target) in self.finished)) % 2**32
            port, client = (target, source) if target in self.opened else (source, target)
            if 0 < sent < 2**31:
                self.carried.setdefault(port, set()).add((client, self.begun[client, port]))
            if flags & FIN:
                self.finished.add((source, target))

    def seen(self, port):
        """The Seen of a listener's port so far."""
        self.drain()
        return Seen(*(len(table.get(port, ())) for table in
                      (self.opened, self.requests, self.replies, self.records, self.carried, self.hellos)))

    def ports(self):
        """Every port to which a connection was opened, or that saw a Start frame."""
        self.drain()
        return sorted({*self.opened, *self.requests, *self.replies})
