# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""MPA, DDP and RDMAP as octets, for hand-made peers and captures. Written from the RFCs alone and
sharing nothing with the product, so that a mistake cannot hide on both ends. Checks nothing: a test
must be able to build what is wrong. RFC 5044 4 and 7.1, RFC 5041 4, RFC 5040 4, RFC 7306."""

import collections
import struct

KEY_REQUEST = b"MPA ID Req Frame"
KEY_REPLY = b"MPA ID Rep Frame"
START_OCTETS = 20
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
MARKER_EVERY = 512

(WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SE, SEND_SE_INVALIDATE,
 TERMINATE, IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE) = range(12)
QN_SEND, QN_READ, QN_TERMINATE, QN_ATOMIC_RESPONSE = range(4)

MpaFrame = collections.namedtuple("MpaFrame", "key flags revision private")
Segment = collections.namedtuple(
    "Segment", "tagged last opcode stag to qn msn mo payload", defaults=(b"",))
# first, length_at and end are positions in the octets of full operation; markers are (position, its
# four octets); covered is what the CRC covers.
Fpdu = collections.namedtuple("Fpdu", "first length_at end ulpdu pad markers covered crc")
Terminate = collections.namedtuple("Terminate", "layer etype code")


def crc32c_table():
    table = []
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
        table.append(octet)
    return table


CRC32C_TABLE = crc32c_table()


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = crc >> 8 ^ CRC32C_TABLE[(crc ^ octet) & 0xFF]
    return crc ^ 0xFFFFFFFF


def start_frame(key=KEY_REQUEST, flags=CRC, revision=1, private=b"", private_length=None):
    """private_length differs from len(private) only where a test wants it wrong."""
    length = len(private) if private_length is None else private_length
    return key + struct.pack(">BBH", flags, revision, length) + private


def fpdu(ulpdu, crc_flip=0, length=None):
    """One FPDU without markers; crc_flip spoils its CRC, length lies about its ULPDU_Length."""
    body = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
    body += bytes(-len(body) % 4)
    return body + struct.pack("<I", crc32c(body) ^ crc_flip)


def marked(fpdu_octets, position, pointer_shift=0):
    """The FPDU (as fpdu() builds it) with its markers, where the stream is at that position. The
    CRC is made anew; pointer_shift makes its FPDUPTRs lie."""
    octets, length_at = b"", None
    body = fpdu_octets[:-4]
    while body or (position + len(octets)) % MARKER_EVERY == 0:
        at = position + len(octets)
        if at % MARKER_EVERY == 0:
            pointer = 0 if length_at is None else at - length_at
            octets += struct.pack(">HH", 0, pointer + pointer_shift)
            continue
        length_at = at if length_at is None else length_at
        room = MARKER_EVERY - at % MARKER_EVERY
        octets, body = octets + body[:room], body[room:]
    return octets + struct.pack("<I", crc32c(octets))


class Octets:
    """Gives out the octets of full operation; the markers on the way are collected."""

    def __init__(self, octets, markers_on):
        self.octets, self.markers_on, self.at = octets, markers_on, 0
        self.markers = []

    def take(self, count):
        """The next octets that are no marker; fewer where the stream ends."""
        taken = b""
        while len(taken) < count and self.at < len(self.octets):
            self.pass_marker()
            end = self.at + count - len(taken)
            if self.markers_on:
                end = min(end, self.at - self.at % MARKER_EVERY + MARKER_EVERY)
            taken += self.octets[self.at:end]
            self.at = min(end, len(self.octets))
        return taken

    def pass_marker(self):
        if self.markers_on and self.at % MARKER_EVERY == 0:
            self.markers.append((self.at, self.octets[self.at:self.at + 4]))
            self.at = min(self.at + 4, len(self.octets))


def fpdus(octets, markers_on):
    """(the FPDUs that are whole, where the first one that is not begins). A marker just before an
    FPDU belongs to it, RFC 5044 4.4."""
    source, found = Octets(octets, markers_on), []
    while True:
        first, source.markers = source.at, []
        source.pass_marker()
        length_at, head = source.at, source.take(2)
        length = int.from_bytes(head, "big")
        body = source.take(length + -(length + 2) % 4)
        crc = source.take(4)
        if len(crc) < 4:
            return found, first
        found.append(Fpdu(first, length_at, source.at, body[:length], body[length:],
                          source.markers, octets[first:source.at - 4], crc))


def control(opcode, tagged, last, ddp_version=1, rdmap_version=1):
    return bytes([(0x80 if tagged else 0) | (0x40 if last else 0) | ddp_version,
                  rdmap_version << 6 | opcode])


def tagged(opcode, stag, offset, payload=b"", last=True, **versions):
    return control(opcode, True, last, **versions) + struct.pack(">IQ", stag, offset) + payload


def untagged(opcode, qn, msn, payload=b"", mo=0, last=True, **versions):
    return control(opcode, False, last, **versions) + struct.pack(">IIII", 0, qn, msn, mo) + payload


def read_request(msn, sink, size, source):
    """sink and source are (STag, TO)."""
    payload = struct.pack(">IQIIQ", *sink, size, *source)
    return untagged(READ_REQUEST, QN_READ, msn, payload)


def parse_start_frame(octets):
    flags, revision, _ = struct.unpack(">BBH", octets[16:START_OCTETS])
    return MpaFrame(octets[:16], flags, revision, octets[START_OCTETS:])


def parse_segment(ulpdu):
    is_tagged, last, opcode = bool(ulpdu[0] & 0x80), bool(ulpdu[0] & 0x40), ulpdu[1] & 0x0F
    if is_tagged:
        stag, offset = struct.unpack(">IQ", ulpdu[2:14])
        return Segment(True, last, opcode, stag, offset, None, None, None, ulpdu[14:])
    stag, qn, msn, mo = struct.unpack(">IIII", ulpdu[2:18])
    return Segment(False, last, opcode, stag, None, qn, msn, mo, ulpdu[18:])


def parse_read_request(segment):
    """((sink STag, sink TO), size, (source STag, source TO))."""
    sink_stag, sink_to, size, source_stag, source_to = struct.unpack(">IQIIQ", segment.payload[:28])
    return (sink_stag, sink_to), size, (source_stag, source_to)


def parse_terminate(segment):
    return Terminate(segment.payload[0] >> 4, segment.payload[0] & 0x0F, segment.payload[1])
