# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The second judge of a capture: decodes each connection by iwarp.py alone and lists what the RFCs
forbid. tshark's dissectors do not look at most of this, and go wrong at some markers."""

import collections
import itertools

import iwarp
import tcp_order

# RFC 5040 figure 3 and RFC 7306 figure 4: the queue of each opcode, None for tagged messages.
QUEUES = {iwarp.WRITE: None, iwarp.READ_RESPONSE: None, iwarp.READ_REQUEST: iwarp.QN_READ,
          iwarp.SEND: iwarp.QN_SEND, iwarp.SEND_INVALIDATE: iwarp.QN_SEND,
          iwarp.SEND_SE: iwarp.QN_SEND, iwarp.SEND_SE_INVALIDATE: iwarp.QN_SEND,
          iwarp.TERMINATE: iwarp.QN_TERMINATE, iwarp.IMMEDIATE: iwarp.QN_SEND,
          iwarp.IMMEDIATE_SE: iwarp.QN_SEND, iwarp.ATOMIC_REQUEST: iwarp.QN_READ,
          iwarp.ATOMIC_RESPONSE: iwarp.QN_ATOMIC_RESPONSE}
# Octets of the messages that have but one length.
LENGTHS = {iwarp.READ_REQUEST: 28, iwarp.IMMEDIATE: 8, iwarp.IMMEDIATE_SE: 8,
           iwarp.ATOMIC_REQUEST: 52, iwarp.ATOMIC_RESPONSE: 12}
INVALIDATING = (iwarp.SEND_INVALIDATE, iwarp.SEND_SE_INVALIDATE)
VERSIONS = (1, 0x40)  # DDP's two bits, RDMAP's upper two
MARKED_WRITE = (iwarp.WRITE, (1, 0x50))  # docs/extensions.md
ANSWERS = (iwarp.READ_RESPONSE, iwarp.ATOMIC_RESPONSE)


def has_header(fpdu):
    """RFC 5041 4: 14 octets tagged, 18 untagged."""
    return len(fpdu.ulpdu) >= (14 if fpdu.ulpdu[:1] >= b"\x80" else 18)


class Direction:
    """One way of a connection: a start frame, then FPDUs."""

    def __init__(self, octets):
        private_length = int.from_bytes(octets[18:iwarp.START_OCTETS], "big")
        self.start_end = iwarp.START_OCTETS + private_length
        self.start = iwarp.parse_start_frame(octets[:self.start_end])
        self.stream = octets[self.start_end:]
        self.is_marked, self.fpdus, self.rest = False, [], b""

    def decode(self, is_marked):
        self.is_marked = is_marked
        whole, rest_at = iwarp.fpdus(self.stream, is_marked)
        self.fpdus = list(itertools.takewhile(has_header, whole))
        self.rest = self.stream[whole[len(self.fpdus)].first if whole[len(self.fpdus):]
                                else rest_at:]

    def is_peer_to_peer(self):
        """RFC 6581 9.1: the A flag, first of the private data of an enhanced frame."""
        return bool(self.start.flags & iwarp.ENHANCED and self.start.private[0] & 0x80)

    def rtr_kinds(self):
        """RFC 6581 9.1: the flags B, C and D, as the opcodes they stand for."""
        bits = (0, 0x40, iwarp.SEND), (2, 0x80, iwarp.WRITE), (2, 0x40, iwarp.READ_REQUEST)
        return {opcode for at, bit, opcode in bits if self.start.private[at] & bit}

    def segments(self):
        return [iwarp.parse_segment(fpdu.ulpdu) for fpdu in self.fpdus]

    def opcodes(self):
        return [segment.opcode for segment in self.segments()]


class Conversation:
    """A connection; ports are (initiator's, responder's)."""

    def __init__(self, ports, octets):
        self.ports = ports
        self.initiator = Direction(octets[ports])
        self.responder = Direction(octets[ports[::-1]])
        self.initiator.decode(bool(self.responder.start.flags & iwarp.MARKERS))
        self.responder.decode(bool(self.initiator.start.flags & iwarp.MARKERS))
        either = self.initiator.start.flags | self.responder.start.flags
        self.crc_on = bool(either & iwarp.CRC)

    @property
    def directions(self):
        return self.initiator, self.responder

    def rtr(self):
        """The opcode of the message of no octets that starts a peer-to-peer connection (RFC 6581
        9.2), or None."""
        if not (self.initiator.is_peer_to_peer() and self.responder.is_peer_to_peer()):
            return None
        for segment in self.initiator.segments()[:1]:
            if segment.opcode == iwarp.READ_REQUEST:
                return None if iwarp.parse_read_request(segment)[1] else segment.opcode
            return None if segment.payload else segment.opcode
        return None

    def opcodes(self):
        """How often each comes, what only starts the connection left out."""
        counts = collections.Counter(opcode for each in self.directions
                                     for opcode in each.opcodes())
        rtr = self.rtr()
        counts[rtr] -= 1
        counts[iwarp.READ_RESPONSE] -= rtr == iwarp.READ_REQUEST
        return +counts

    def problems(self):
        """What is wrong, one line each."""
        found = list(start_problems(self))
        for direction in self.directions:
            found += framing_problems(direction, self.crc_on)
            found += segment_problems(direction)
            found += mark_problems(direction)
            found += order_problems(direction)
        return found


def conversations(packets):
    """The connections whose packets (tcp_order.Packet, in order) these are. One that was refused
    and tried again is none until it is accepted."""
    octets, opened = collections.defaultdict(bytes), {}
    for packet in packets:
        ports = packet.source, packet.destination
        if packet.flags == tcp_order.SYN | tcp_order.ACK:
            opened[ports[::-1]] = True
        octets[ports] += packet.payload
    return [Conversation(ports, octets) for ports in opened]


def start_problems(conversation):
    """RFC 5044 7.1, RFC 6581 9."""
    request, reply = (direction.start for direction in conversation.directions)
    if (request.key, reply.key) != (iwarp.KEY_REQUEST, iwarp.KEY_REPLY):
        yield f"keys {request.key} and {reply.key}"
    if request.flags & iwarp.REJECT:
        yield "a Request that rejects"
    if reply.revision != request.revision or reply.revision not in (1, 2):
        yield f"revisions {request.revision} and {reply.revision}"
    if (request.flags ^ reply.flags) & iwarp.ENHANCED:
        yield "only one frame is enhanced"
    if request.flags & iwarp.ENHANCED and request.revision != 2:
        yield "enhanced at revision 1"


def framing_problems(direction, crc_on):
    """RFC 5044 4."""
    if direction.is_marked and direction.stream[:4] not in (b"", bytes(4)):
        yield "a marked stream that begins with no marker"
    if direction.rest:
        yield f"{len(direction.rest)} octets at the end are no FPDU"
    for fpdu in direction.fpdus:
        if crc_on and iwarp.crc32c(fpdu.covered) != int.from_bytes(fpdu.crc, "little"):
            yield f"wrong CRC at {fpdu.first}"
        if any(fpdu.pad):
            yield f"pad is not zero at {fpdu.first}"
        for at, marker in fpdu.markers:
            if int.from_bytes(marker, "big") != max(0, at - fpdu.length_at):
                yield f"marker {marker.hex()} at {at}, its FPDU's length is at {fpdu.length_at}"


def segment_problems(direction):
    """RFC 5041 4, RFC 5040 4, RFC 7306 6: each segment by itself."""
    for fpdu, segment in zip(direction.fpdus, direction.segments()):
        queue = QUEUES.get(segment.opcode, "none")
        if (segment.tagged, segment.qn) != (queue is None, queue):
            yield f"opcode {segment.opcode} on queue {segment.qn}"
        control = fpdu.ulpdu[0] & 0x3F, fpdu.ulpdu[1] & 0xF0
        if control != VERSIONS and (segment.opcode, control) != MARKED_WRITE:
            yield f"versions or reserved bits {control}"
        wanted = LENGTHS.get(segment.opcode, len(segment.payload))
        if len(segment.payload) != wanted:
            yield f"opcode {segment.opcode} of {len(segment.payload)} octets"
        if not segment.tagged and segment.stag and segment.opcode not in INVALIDATING:
            yield f"opcode {segment.opcode} with an STag to invalidate"


def mark_problems(direction):
    """docs/extensions.md: the segments of a Write that an Immediate completes are marked, and no others."""
    marked, last = set(), False
    for fpdu, segment in zip(direction.fpdus, direction.segments()):
        if segment.opcode == iwarp.WRITE:
            if last and True in marked:
                yield "a Write is marked that no Immediate completes"
            marked = (set() if last else marked) | {bool(fpdu.ulpdu[1] & 0x10)}
            last = segment.last
        elif segment.opcode in (iwarp.IMMEDIATE, iwarp.IMMEDIATE_SE):
            completes = segment.payload[4:] not in (bytes(4), b"\xff" * 4)
            if completes and marked != {True}:
                yield "a Write that an Immediate completes is not marked"
            marked = set() if completes else marked
        elif segment.opcode not in ANSWERS:
            if True in marked:
                yield "a Write is marked that no Immediate completes"
            marked = set()


def order_problems(direction):
    """RFC 5041 5.3: MSNs count messages, MOs octets. RFC 5040 5.6: a Terminate is the last word."""
    next_msn, next_mo = collections.Counter(), collections.Counter()
    seen = collections.Counter()
    for segment in direction.segments():
        if seen[iwarp.TERMINATE]:
            yield f"opcode {segment.opcode} behind a Terminate"
        seen[segment.opcode] += 1
        if segment.tagged:
            continue
        wanted = next_msn[segment.qn] + 1, next_mo[segment.qn]
        if (segment.msn, segment.mo) != wanted:
            yield f"queue {segment.qn}: MSN {segment.msn}, MO {segment.mo} instead of {wanted}"
        next_mo[segment.qn] = 0 if segment.last else segment.mo + len(segment.payload)
        next_msn[segment.qn] = segment.msn if segment.last else segment.msn - 1
