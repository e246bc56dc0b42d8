# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A peer made of a plain TCP socket and iwarp.py. It does what a test tells it, right or wrong,
and never waits longer than its time-out. RFC 5044 4 and 7.1."""

import socket
import struct

import iwarp
from program import SLOWNESS

SECONDS_MAX = 20 * SLOWNESS


class PeerClosed(Exception):
    """The other end closed or reset the connection where octets were due."""


class RawPeer:
    """One TCP connection that speaks MPA by hand."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(SECONDS_MAX)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.markers_on = False
        self.stream_octets = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    @classmethod
    def connect(cls, address, port):
        return cls(socket.create_connection((address, port), timeout=SECONDS_MAX))

    def send(self, octets):
        self.sock.sendall(octets)

    def recv_plain(self, count):
        octets = b""
        while len(octets) < count:
            try:
                more = self.sock.recv(count - len(octets))
            except ConnectionError as error:
                raise PeerClosed(str(error)) from error
            if not more:
                raise PeerClosed(f"closed after {len(octets)} of {count} octets")
            octets += more
        return octets

    def recv_start_frame(self):
        head = self.recv_plain(iwarp.START_OCTETS)
        private_octets = struct.unpack(">H", head[18:])[0]
        return iwarp.parse_start_frame(head + self.recv_plain(private_octets))

    def recv_stream(self, count):
        """Octets of full operation. Markers stay in what is returned, which is the FPDU as the
        CRC sees it; the second value is the same without them."""
        seen, plain = b"", b""
        while len(plain) < count:
            if self.markers_on and self.stream_octets % iwarp.MARKER_EVERY == 0:
                seen += self.recv_plain(4)
                self.stream_octets += 4
                continue
            octet = self.recv_plain(1)
            seen, plain = seen + octet, plain + octet
            self.stream_octets += 1
        return seen, plain

    def recv_segment(self):
        """The next DDP segment; asserts that the CRC of its FPDU is right."""
        seen, head = self.recv_stream(2)
        length = struct.unpack(">H", head)[0]
        seen_body, body = self.recv_stream(length + (-(length + 2)) % 4)
        seen_crc, crc = self.recv_stream(4)
        covered = seen + seen_body + seen_crc[:-4]
        assert struct.unpack("<I", crc)[0] == iwarp.crc32c(covered), "an FPDU with a wrong CRC"
        return iwarp.parse_segment(body[:length])

    def send_ulpdu(self, ulpdu, **wrong):
        self.send(iwarp.fpdu(ulpdu, **wrong))

    def recv_terminate(self):
        """The Terminate that the peer sends; other segments on the way to it are let pass."""
        while True:
            segment = self.recv_segment()
            if segment.opcode == iwarp.TERMINATE:
                assert (segment.qn, segment.msn, segment.mo) == (iwarp.QN_TERMINATE, 1, 0)
                return iwarp.parse_terminate(segment)

    def recv_end(self):
        """True when the peer closes or resets the connection and sends nothing before that."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def reset(self):
        """Closes with an RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def start(self, **frame):
        """Sends a Request and returns the Reply."""
        self.send(iwarp.start_frame(**frame))
        reply = self.recv_start_frame()
        self.markers_on = bool(frame.get("flags", iwarp.CRC) & iwarp.MARKERS)
        return reply


class RpingPeer(RawPeer):
    """The client half of rping by hand: the server Reads our data, then Writes it back."""

    SOURCE, SINK = (0x1001, 0x10000), (0x2002, 0x20000)
    SIZE = 64

    def __init__(self, sock):
        super().__init__(sock)
        self.msn = 0

    @classmethod
    def started(cls, port, address="127.0.0.1", **frame):
        peer = cls.connect(address, port)
        reply = peer.start(**frame)
        assert reply.key == iwarp.KEY_REPLY and not reply.flags & iwarp.REJECT
        return peer

    def advertise(self, place):
        """rping's message: address, key and size of the buffer to Read or to Write."""
        self.msn += 1
        info = struct.pack(">QII", place[1], place[0], self.SIZE)
        self.send_ulpdu(iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, self.msn, info))

    def recv_read_request(self):
        self.advertise(self.SOURCE)
        segment = self.recv_segment()
        assert segment.opcode == iwarp.READ_REQUEST and segment.qn == iwarp.QN_READ
        sink, size, source = iwarp.parse_read_request(segment)
        assert (size, source) == (self.SIZE, self.SOURCE)
        return sink

    def recv_send(self):
        segment = self.recv_segment()
        assert segment.opcode == iwarp.SEND and segment.qn == iwarp.QN_SEND and segment.last

    def recv_write(self):
        """What the server Writes into our sink, asserted to stay inside it."""
        octets = bytearray(self.SIZE)
        while True:
            segment = self.recv_segment()
            assert segment.opcode == iwarp.WRITE and segment.stag == self.SINK[0]
            at = segment.to - self.SINK[1]
            assert 0 <= at and at + len(segment.payload) <= self.SIZE
            octets[at:at + len(segment.payload)] = segment.payload
            if segment.last:
                return bytes(octets)

    def ping(self, text=b"rdma-ping-by-hand"):
        data = text.ljust(self.SIZE, b"\0")
        sink = self.recv_read_request()
        self.send_ulpdu(iwarp.tagged(iwarp.READ_RESPONSE, *sink, data))
        self.recv_send()
        self.advertise(self.SINK)
        assert self.recv_write() == data
        self.recv_send()
