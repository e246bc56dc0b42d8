# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Cuts a marked stream the way that tshark's MPA dissector can follow: it expects one FPDU in each
TCP segment, and markers in both directions when either end asks for them. No octet of an FPDU is
touched. What it cannot follow even so is left out (is_misread), for the other judge alone."""

import collections

import iwarp
import tcp_order


def is_misread(fpdu):
    """The dissector counts one marker too many in an FPDU that holds one and ends where the next is
    due."""
    return bool(fpdu.markers) and fpdu.end % iwarp.MARKER_EVERY == 0


def views(packets, conversations):
    """Lists of packets, each for a file of its own: what was captured, when nothing is marked, or
    else one for each connection; two for one that is marked one way, the second without the flag
    that says so."""
    if not any(end.is_marked for each in conversations for end in each.directions):
        return [packets]
    found = []
    for each in conversations:
        marked = [end for end in each.directions if end.is_marked]
        plain = [end for end in each.directions if not end.is_marked]
        found += [list(view(packets, each, marked, 0))] if marked else []
        found += [list(view(packets, each, plain, iwarp.MARKERS))] if plain else []
    return found


def view(packets, conversation, directions, flags_cleared):
    """The start frames, without these flags, and the FPDUs of these directions, each in one packet
    and where its last octet came."""
    ends = {conversation.ports: conversation.initiator,
            conversation.ports[::-1]: conversation.responder}
    units = {ports: collections.deque(units_of(end, end in directions, flags_cleared))
             for ports, end in ends.items()}
    arrived = collections.Counter()
    for packet in packets:
        ports = packet.source, packet.destination
        if ports not in ends:
            continue
        if packet.flags & tcp_order.SYN:
            yield packet
        arrived[ports] += len(packet.payload)
        while units[ports] and units[ports][0][0] + len(units[ports][0][1]) <= arrived[ports]:
            first, octets = units[ports].popleft()
            yield packet._replace(flags=tcp_order.ACK, sequence=1 + first, payload=octets)


def units_of(direction, with_fpdus, flags_cleared):
    """(position, octets) of the start frame and of each FPDU that is not misread."""
    start = direction.start
    yield 0, iwarp.start_frame(start.key, start.flags & ~flags_cleared, start.revision,
                               start.private)
    for fpdu in direction.fpdus if with_fpdus else ():
        if not is_misread(fpdu):
            yield direction.start_end + fpdu.first, direction.stream[fpdu.first:fpdu.end]
