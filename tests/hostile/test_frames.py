# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One row an attack: what is sent in full operation, and every octet of the answer. Each row runs
with the attacker as initiator and as responder, on a fresh connection to the one victim. RFC 5040
4.8 and 7, RFC 5041 7, RFC 5042 6, RFC 5044 8."""

import random
import struct

import iwarp
import pytest
from attacker import (LEN_ERR, PROT_ERR, REM_INV_REQ, SUCCESS, Attacker, read_request, response,
                      send, tagged, untagged, write)
from scene import CLOSED, READ_OCTETS, RECV_OCTETS, SURVIVES, TOP, Raw, Scene, row, run


def stag_rows():
    """RFC 5042 6.1.1. Writes are DDP's to refuse, Read Requests and invalidations RDMAP's."""
    guesses = {
        "random": lambda s: random.getrandbits(32), "zero": lambda s: 0,
        "one": lambda s: 1, "all ones": lambda s: 0xFFFFFFFF,
        "neighbour above": lambda s: s.rw.stag + 1, "neighbour below": lambda s: s.rw.stag - 1,
        "next slot": lambda s: s.rw.stag + 256, "slot before": lambda s: s.rw.stag - 256,
        "other key": lambda s: s.rw.stag ^ 0x80, "other slot": lambda s: s.rw.stag ^ 0x80000000,
        "deregistered": lambda s: s.gone.stag, "memory registered anew": lambda s: s.reused.stag,
        "octets turned": lambda s: int.from_bytes(s.rw.stag.to_bytes(4, "little"), "big"),
    }
    for name, guess in guesses.items():
        yield row(f"write, stag {name}", "5041 7.1", (1, 1, 0),
                  lambda s, guess=guess: [write(guess(s), s.rw.address)])
        yield row(f"read, stag {name}", "5040 7.2", (0, 1, 0),
                  lambda s, guess=guess: [read_request(guess(s), s.rw.address, 1)])
        yield row(f"send invalidate, stag {name}", "5040 7.2", (0, 1, 0),
                  lambda s, guess=guess: [send(1, s.received(b"inv"), iwarp.SEND_INVALIDATE,
                                               invalidate=guess(s) & 0xFFFFFFFF)],
                  recvs=2, done={1: REM_INV_REQ})
    yield row("write, stag of another pd", "5042 6.1.1", (1, 1, 2),
              lambda s: [write(s.foreign.stag, s.foreign.address)])
    yield row("read, stag of another pd", "5042 6.1.1", (0, 1, 3),
              lambda s: [read_request(s.foreign.stag, s.foreign.address, 1)])
    for se in (iwarp.SEND_INVALIDATE, iwarp.SEND_SE_INVALIDATE):
        yield row(f"send invalidate {se}, stag of another pd", "5040 5.3", (0, 1, 9),
                  lambda s, se=se: [send(1, s.received(b"inv"), se, invalidate=s.foreign.stag)],
                  recvs=1, done={1: REM_INV_REQ})
        yield row(f"send invalidate {se}, a region of all streams", "5042 6.4.5", (0, 2, 9),
                  lambda s, se=se: [send(1, s.received(b"inv"), se, invalidate=s.rw.stag)],
                  recvs=1, done={1: REM_INV_REQ})


def bounds_rows():
    """RFC 5042 6.2.1, 6.3.1: to the octet, and the sums that wrap."""
    writes = {
        "one octet before": ("rw", lambda r: r.address - 1, 1, 1),
        "from one octet before": ("front", lambda r: r.address - 1, 4096, 1),
        "one octet behind": ("rw", lambda r: r.end, 1, 1),
        "one octet too long": ("edge", lambda r: r.end - 15, 16, 1),
        "of odd length, one too long": ("odd", lambda r: r.address, 778, 1),
        "behind one octet": ("empty", lambda r: r.address + 1, 1, 1),
        "at offset zero": ("rw", lambda r: 0, 1, 1),
        "last octet of all": ("rw", lambda r: TOP - 1, 1, 1),
        "wrap": ("rw", lambda r: TOP - 1, 2, 3),
        "wrap to the region": ("rw", lambda r: TOP - 8, 64, 3),
        "at the upper half": ("rw", lambda r: r.address | 1 << 63, 1, 1),
        "far behind": ("rw", lambda r: r.address + (1 << 32), 1, 1),
        "all around": ("rw", lambda r: r.address - 64, 4096 + 128, 1),
    }
    for name, (region, offset, length, code) in writes.items():
        yield row(f"write {name}", "5041 7.1", (1, 1, code),
                  lambda s, region=region, offset=offset, length=length:
                  [write(getattr(s, region).stag, offset(getattr(s, region)), b"!" * length)])
    reads = {**writes, "2^32-1 octets": ("rw", lambda r: r.address, 2**32 - 1, 1),
             "2^32-1 octets that wrap": ("rw", lambda r: TOP - 2**31, 2**32 - 1, 3),
             "2^31 octets": ("rw", lambda r: r.address, 2**31, 1)}
    for name, (region, offset, size, code) in reads.items():
        yield row(f"read {name}", "5040 7.2", (0, 1, 4 if code == 3 else 1),
                  lambda s, region=region, offset=offset, size=size:
                  [read_request(getattr(s, region).stag, offset(getattr(s, region)), size)])
    yield row("second segment of a write runs over", "5041 7.1", (1, 1, 1), lambda s: [
        write(s.edge.stag, s.edge.end - 8, s.placed(s.edge, 4088, b"8 octets"), last=False),
        write(s.edge.stag, s.edge.end, b"!")])
    for name, offset in {"before": -1, "at its end": 4096, "behind": 4097}.items():
        yield row(f"write of nothing {name}", "5041 5.2", SURVIVES,
                  lambda s, offset=offset: [write(s.edge.stag, s.edge.address + offset, b"")])
    yield row("write of nothing at the wrap", "5041 5.2", SURVIVES,
              lambda s: [write(s.rw.stag, TOP - 1, b"")])
    yield row("write of nothing, no such stag", "5041 5.2", SURVIVES,
              lambda s: [write(random.getrandbits(32), 7, b"", last=False), write(0, 0, b"")])
    yield row("read of nothing, no such stag", "5042 6.3.5", SURVIVES,
              lambda s: [read_request(random.getrandbits(32), TOP - 1, 0)],
              answers=lambda s: [response(0x51, 0x5100)])
    yield row("first and last octet", "5041 7.1", SURVIVES, lambda s: [
        write(s.edge.stag, s.edge.address, s.placed(s.edge, 0, b"a")),
        write(s.edge.stag, s.edge.end - 1, s.placed(s.edge, 4095, b"z"))])
    yield row("read to a sink that wraps", "5040 5.2.1", SURVIVES,
              lambda s: [read_request(s.ro.stag, s.ro.address, 2, sink=(7, TOP - 1))],
              answers=lambda s: [response(7, TOP - 1, s.victim.dump(s.ro, 0, 2))])
    yield row("read of the last octet", "5040 7.2", SURVIVES,
              lambda s: [read_request(s.edge.stag, s.edge.end - 1, 1)],
              answers=lambda s: [response(0x51, 0x5100, s.victim.dump(s.edge, 4095, 1))])


def access_rows():
    """RFC 5042 6.3.5. DDP has no code for rights: RDMAP's is used for Writes too."""
    for name in ("ro", "local"):
        yield row(f"write to {name}", "5040 4.8", (0, 1, 2),
                  lambda s, name=name: [write(getattr(s, name).stag, getattr(s, name).address)])
    for name in ("wo", "local"):
        yield row(f"read of {name}", "5040 4.8", (0, 1, 2), lambda s, name=name: [
            read_request(getattr(s, name).stag, getattr(s, name).address, 1)])
    yield row("write to ro and beyond", "5040 4.8", (0, 1, 2),
              lambda s: [write(s.ro.stag, s.ro.end, b"!!")])


def response_rows():
    """Read Responses place only what was asked for, in the order it was asked for."""
    yield row("response that nobody asked for", "5040 7.2", (0, 2, 6),
              lambda s: [response(s.rw.stag, s.rw.address, b"!")])
    yield row("response of nothing that nobody asked for", "5040 7.2", (0, 2, 6),
              lambda s: [response(0, 0)])
    yield row("response one octet too long", "5042 6.2.1", (1, 1, 1),
              lambda s: [response(*s.sinks[0], b"!" * (READ_OCTETS + 1))], reads=1)
    yield row("response too long, more to come", "5042 6.2.1", (1, 1, 1),
              lambda s: [response(*s.sinks[0], b"!" * (READ_OCTETS + 1), last=False)], reads=1)
    yield row("response to a region", "5040 5.2.2", (1, 1, 0),
              lambda s: [response(s.rw.stag, s.rw.address, b"!" * READ_OCTETS)], reads=1)
    yield row("response to the region of its sink", "5040 5.2.2", (1, 1, 0),
              lambda s: [response(s.sink.stag, s.sink.address, b"!" * READ_OCTETS)], reads=1)
    yield row("response at another offset", "5040 5.2.2", (1, 1, 1), lambda s: [
        response(s.sinks[0][0], s.sinks[0][1] + 1, b"!" * (READ_OCTETS - 1))], reads=1)
    yield row("response before its sink", "5040 5.2.2", (1, 1, 1), lambda s: [
        response(s.sinks[0][0], s.sinks[0][1] - 1, b"!" * READ_OCTETS)], reads=1)
    yield row("response too short", "5040 5.2.2", (0, 2, 0xFF),
              lambda s: [response(*s.sinks[0], b"!" * (READ_OCTETS - 1))], reads=1)
    yield row("response of nothing for a read", "5040 5.2.2", (0, 2, 0xFF),
              lambda s: [response(*s.sinks[0])], reads=1)
    yield row("response that does not end", "5040 5.2.2", (0, 2, 0xFF),
              lambda s: [response(*s.sinks[0], b"!" * READ_OCTETS, last=False)], reads=1)


def continuation_rows():
    """The same of a Read Response's later segments, and of what comes behind it."""
    def all_of(s, number=1):
        return s.read(bytes(range(READ_OCTETS)), number)

    yield row("continuation runs over", "5042 6.2.1", (1, 1, 1), lambda s: [
        response(*s.sinks[0], s.read(b"r" * 90), last=False),
        response(s.sinks[0][0], s.sinks[0][1] + 90, b"!" * 7)], reads=1)
    yield row("continuation leaves a gap", "5040 5.2.2", (1, 1, 1), lambda s: [
        response(*s.sinks[0], s.read(b"r" * 40), last=False),
        response(s.sinks[0][0], s.sinks[0][1] + 41, b"!" * 55)], reads=1)
    yield row("continuation goes back", "5040 5.2.2", (1, 1, 1), lambda s: [
        response(*s.sinks[0], s.read(b"r" * 40), last=False),
        response(*s.sinks[0], b"!" * 40, last=False)], reads=1)
    yield row("continuation under another stag", "5040 5.2.2", (1, 1, 0), lambda s: [
        response(*s.sinks[0], s.read(b"r" * 40), last=False),
        response(s.sinks[1][0], 40, b"!" * 56)], reads=2)
    yield row("response for the second read first", "5040 5.5", (1, 1, 0),
              lambda s: [response(*s.sinks[1], b"!" * READ_OCTETS)], reads=2)
    yield row("response twice", "5042 6.2.1", (0, 2, 6),
              lambda s: [response(*s.sinks[0], all_of(s)), response(*s.sinks[0], b"!")],
              reads=1, done={101: SUCCESS})
    yield row("response twice, another read waits", "5042 6.2.1", (1, 1, 0),
              lambda s: [response(*s.sinks[0], all_of(s)), response(*s.sinks[0], b"!" * 96)],
              reads=2, done={101: SUCCESS})
    yield row("write to a read's sink", "5042 6.2.1", (1, 1, 0),
              lambda s: [write(*s.sinks[0], b"!" * READ_OCTETS)], reads=1)
    yield row("read of a read's sink", "5042 6.3.1", (0, 1, 0),
              lambda s: [read_request(*s.sinks[0], READ_OCTETS)], reads=1)
    yield row("send invalidates a read's sink", "5040 5.3", (0, 1, 0),
              lambda s: [send(1, s.received(b"inv"), iwarp.SEND_INVALIDATE,
                              invalidate=s.sinks[0][0])],
              recvs=1, reads=1, done={1: REM_INV_REQ})
    yield row("response in octets", "5040 5.2.2", SURVIVES, lambda s: [
        response(s.sinks[0][0], s.sinks[0][1] + i, s.read(b"%c" % i, offset=i),
                 last=i + 1 == READ_OCTETS) for i in range(READ_OCTETS)],
              reads=1, done={101: SUCCESS})
    yield row("response with empty segments", "5041 5.2", SURVIVES, lambda s: [
        response(0, 0, last=False), response(*s.sinks[0], all_of(s)[:9], last=False),
        response(1, 2, last=False), response(s.sinks[0][0], 9, bytes(range(9, READ_OCTETS)))],
              reads=1, done={101: SUCCESS})


def queue_rows():
    """RFC 5041 7.1: queue number, message sequence number and message offset."""
    for qn in (3, 4, 5, 255, 2**31, 2**32 - 1):
        yield row(f"qn {qn}", "5041 7.1", (1, 2, 1), lambda s, qn=qn: [send(1, qn=qn)], recvs=1)
    for opcode, qn, name in ((iwarp.SEND, 1, "send on the read queue"),
                             (iwarp.SEND, 2, "send on the terminate queue"),
                             (iwarp.READ_REQUEST, 0, "read request on the send queue"),
                             (iwarp.READ_REQUEST, 2, "read request on the terminate queue"),
                             (iwarp.TERMINATE, 0, "terminate on the send queue"),
                             (iwarp.TERMINATE, 1, "terminate on the read queue")):
        yield row(name, "5040 4.1", (0, 2, 6), lambda s, opcode=opcode, qn=qn:
                  [untagged(opcode, qn, 1, bytes(28))], recvs=1)
    for msn in (0, 2, 3, 2**31, 2**31 + 1, 2**32 - 1):
        yield row(f"first send has msn {msn}", "5041 7.1", (1, 2, 3),
                  lambda s, msn=msn: [send(msn)], recvs=2)
        yield row(f"first read request has msn {msn}", "5041 7.1", (1, 2, 3),
                  lambda s, msn=msn: [read_request(s.rw.stag, s.rw.address, 1, msn)])
        yield row(f"terminate has msn {msn}", "5041 7.1", (1, 2, 3),
                  lambda s, msn=msn: [untagged(iwarp.TERMINATE, 2, msn, bytes(4))])
    yield row("msn repeated", "5041 7.1", (1, 2, 3),
              lambda s: [send(1, s.received(b"one")), send(1, b"!")], recvs=2, done={1: SUCCESS})
    yield row("msn skipped", "5041 7.1", (1, 2, 3),
              lambda s: [send(1, s.received(b"one")), send(3, b"!")], recvs=3, done={1: SUCCESS})
    yield row("msn changes in a message", "5041 7.1", (1, 2, 3), lambda s: [
        send(1, s.received(b"half"), last=False), send(2, b"!", mo=4)], recvs=2)
    yield row("read request's msn repeated", "5041 7.1", (1, 2, 3), lambda s: [
        read_request(0, 0, 0), read_request(s.rw.stag, s.rw.address, 1)], answers=None)
    for mo in (1, 4, 2**31, 2**32 - 1):
        yield row(f"first mo is {mo}", "5041 7.1", (1, 2, 4), lambda s, mo=mo: [send(1, mo=mo)],
                  recvs=1)
        yield row(f"mo {mo} of a read request", "5041 7.1", (1, 2, 4), lambda s, mo=mo: [
            read_request(s.rw.stag, s.rw.address, 1, mo=mo)])
        yield row(f"mo {mo} of a terminate", "5041 7.1", (1, 2, 4), lambda s, mo=mo: [
            untagged(iwarp.TERMINATE, 2, 1, bytes(4), mo=mo)])
    for mo, name in ((0, "goes back"), (7, "overlaps"), (9, "leaves a gap"),
                     (2**32 - 8, "wraps"), (RECV_OCTETS, "is behind the receive")):
        yield row(f"second mo {name}", "5041 7.1", (1, 2, 4), lambda s, mo=mo: [
            send(1, s.received(b"8 octets"), last=False), send(1, b"!" * 8, mo=mo)], recvs=1)
    yield row("mo goes on in the next message", "5041 7.1", (1, 2, 4), lambda s: [
        send(1, s.received(b"8 octets")), send(2, b"!", mo=8)], recvs=2, done={1: SUCCESS})


def send_rows():
    """RFC 5042 6.4.3.1: Sends take what was posted and no more."""
    yield row("send without a receive", "5041 7.1", (1, 2, 2), lambda s: [send(1)])
    yield row("send of nothing without a receive", "5041 7.1", (1, 2, 2), lambda s: [send(1, b"")])
    yield row("one send too many", "5041 7.1", (1, 2, 2), lambda s: [
        send(1, s.received(b"1st")), send(2, s.received(b"2nd", 2)), send(3, b"!")],
              recvs=2, done={1: SUCCESS, 2: SUCCESS})
    yield row("send one octet too long", "5041 7.1", (1, 2, 5),
              lambda s: [send(1, b"!" * (RECV_OCTETS + 1))], recvs=2, done={1: LEN_ERR})
    yield row("send far too long", "5041 7.1", (1, 2, 5),
              lambda s: [send(1, b"!" * 60000)], recvs=2, done={1: LEN_ERR})
    yield row("second segment too long", "5041 7.1", (1, 2, 5), lambda s: [
        send(1, s.received(b"r" * 60), last=False), send(1, b"!" * 5, mo=60)],
              recvs=2, done={1: LEN_ERR})
    yield row("segment behind a full receive", "5041 7.1", (1, 2, 5), lambda s: [
        send(1, s.received(b"r" * 64), last=False), send(1, b"!", mo=64)],
              recvs=2, done={1: LEN_ERR})
    yield row("opcode changes in a message", "5040 5.3", (0, 2, 6), lambda s: [
        send(1, s.received(b"half"), last=False), send(1, b"!", iwarp.SEND_SE, mo=4)], recvs=2)
    yield row("message becomes a send with invalidate", "5040 5.3", (0, 2, 6), lambda s: [
        send(1, s.received(b"half"), last=False),
        send(1, b"!", iwarp.SEND_INVALIDATE, mo=4, invalidate=s.rw.stag)], recvs=2)
    yield row("read request in the middle of a send", "5040 5.5", SURVIVES, lambda s: [
        send(1, s.received(b"half"), last=False), read_request(0, 0, 0),
        send(1, s.received(b"half", offset=4), mo=4)], recvs=1, done={1: SUCCESS},
              answers=lambda s: [response(0x51, 0x5100)])
    yield row("send in octets", "5041 5.3", SURVIVES, lambda s: [
        send(1, s.received(b"%c" % i, offset=i), mo=i, last=i == 63) for i in range(64)],
              recvs=1, done={1: SUCCESS})
    yield row("empty segments of a send", "5041 5.3", SURVIVES, lambda s: [
        *[send(1, b"", last=False) for _ in range(50)], send(1, s.received(b"end"))],
              recvs=1, done={1: SUCCESS})
    yield row("receive into deregistered memory", "5040 7.1", (0, 2, 7),
              lambda s: [send(1, b"!")], recvs=2, done={1: PROT_ERR}, mr="inbox")


def opcode_rows():
    for opcode in range(12, 16):
        yield row(f"opcode {opcode} untagged", "5040 4.2", (0, 2, 6),
                  lambda s, opcode=opcode: [untagged(opcode, 0, 1)], recvs=1)
        yield row(f"opcode {opcode} tagged", "5040 4.2", (0, 2, 6),
                  lambda s, opcode=opcode: [tagged(opcode, s.rw.stag, s.rw.address, b"!")])
    for opcode in (1, 3, 4, 5, 6, 7, 8, 9, 10, 11):
        yield row(f"opcode {opcode} tagged, which is untagged", "5040 4.2", (0, 2, 6),
                  lambda s, opcode=opcode: [tagged(opcode, s.rw.stag, s.rw.address, b"!" * 28)],
                  recvs=1)
    for opcode in (iwarp.WRITE, iwarp.READ_RESPONSE):
        for qn in range(3):
            yield row(f"opcode {opcode} untagged on queue {qn}, which is tagged", "5040 4.2",
                      (0, 2, 6), lambda s, opcode=opcode, qn=qn: [untagged(opcode, qn, 1, b"!")],
                      recvs=1, reads=1)
    for opcode in (8, 9):
        yield row(f"opcode {opcode} of RFC 7306, not agreed", "7306 4", (0, 2, 6),
                  lambda s, opcode=opcode: [untagged(opcode, 0, 1, bytes(8))], recvs=1)
    yield row("atomic response, not agreed", "5041 7.1", (1, 2, 1),
              lambda s: [untagged(11, 3, 1, bytes(12))])
    for version in (0, 2, 3):
        yield row(f"tagged, ddp version {version}", "5041 7.1", (1, 1, 4),
                  lambda s, version=version: [write(s.rw.stag, s.rw.address, ddp=version)])
        yield row(f"untagged, ddp version {version}", "5041 7.1", (1, 2, 6),
                  lambda s, version=version: [send(1, ddp=version)], recvs=1)
        yield row(f"write, rdmap version {version}", "5040 7.2", (0, 2, 5),
                  lambda s, version=version: [write(s.rw.stag, s.rw.address, rdmap=version)])
        yield row(f"send, rdmap version {version}", "5040 7.2", (0, 2, 5),
                  lambda s, version=version: [send(1, rdmap=version)], recvs=1)
        yield row(f"read request, rdmap version {version}", "5040 7.2", (0, 2, 5),
                  lambda s, version=version:
                  [read_request(s.rw.stag, s.rw.address, 1, rdmap=version)])
    yield row("reserved bits of a write", "5041 4.2", SURVIVES, lambda s: [
        write(s.rw.stag, s.rw.address, s.placed(s.rw, 0, b"bits"), reserved=15)])
    yield row("reserved bits of a send", "5041 4.3", SURVIVES, lambda s: [
        send(1, s.received(b"bits"), reserved=15, invalidate=0xFFFFFFFF)],
              recvs=1, done={1: SUCCESS})
    yield row("reserved bits of a read request", "5040 4.3", SURVIVES,
              lambda s: [read_request(0, 0, 0, reserved=15, invalidate=s.rw.stag)],
              answers=lambda s: [response(0x51, 0x5100)])


def length_rows():
    """ULPDUs too short for what they must hold, and lengths that lie. RFC 5044 8: no headers."""
    for count in (0, 1, 2, 13, 14, 17):
        yield row(f"ulpdu of {count} octets, untagged", "5041 7.2", (1, 0, 0),
                  lambda s, count=count: [send(1, b"")[:count]], recvs=1)
    for count in (1, 2, 13):
        yield row(f"ulpdu of {count} octets, tagged", "5041 7.2", (1, 0, 0),
                  lambda s, count=count: [write(s.rw.stag, s.rw.address, b"")[:count]])
    for kind in (0x10, 0x11):
        yield row(f"message {kind:#x} of docs/extensions.md, not agreed", "5041 7.2", (1, 0, 0),
                  lambda s, kind=kind: [bytes([0, kind])])
    for cut in (1, 14, 27, 28):
        yield row(f"read request without its last {cut} octets", "5040 4.4", (0, 2, 0xFF),
                  lambda s, cut=cut: [read_request(s.rw.stag, s.rw.address, 1, cut=cut)])
    yield row("read request one octet too long", "5041 7.1", (1, 2, 5),
              lambda s: [read_request(s.rw.stag, s.rw.address, 1, cut=-1)])
    yield row("read request far too long", "5041 7.1", (1, 2, 5),
              lambda s: [read_request(s.rw.stag, s.rw.address, 1, cut=-30000)])
    yield row("read request in two segments", "5040 5.2.1", (0, 2, 0xFF),
              lambda s: [read_request(s.rw.stag, s.rw.address, 1, cut=14, last=False)])
    yield row("read request that does not end", "5040 5.2.1", (0, 2, 0xFF),
              lambda s: [read_request(s.rw.stag, s.rw.address, 1, last=False)])

    def lie(ulpdu, length):
        return Raw(iwarp.fpdu(ulpdu, length=length))

    yield row("length one too small", "5044 8", (2, 0, 2),
              lambda s: [lie(write(s.rw.stag, s.rw.address, b"!" * 64), 73)])
    yield row("length one too large", "5044 8", (2, 0, 2),
              lambda s: [Raw(iwarp.fpdu(send(1), length=len(send(1)) + 4) + bytes(4))], recvs=1)
    yield row("length 0 before octets", "5044 8", (2, 0, 2), lambda s: [lie(send(1), 0)], recvs=1)
    yield row("length 65535 with so many octets", "5044 8", (2, 0, 2),
              lambda s: [Raw(iwarp.fpdu(send(1), length=65535) + bytes(65544))], recvs=1)
    for flip in (1, 0x80000000, 0xFFFFFFFF):
        yield row(f"crc wrong by {flip:#x}", "5044 8", (2, 0, 2), lambda s, flip=flip:
                  [Raw(iwarp.fpdu(write(s.rw.stag, s.rw.address, b"!" * 64), crc_flip=flip))])
    yield row("crc field in network order", "5044 4.4", (2, 0, 2), lambda s: [
        Raw(iwarp.fpdu(send(1, b"abcd"))[:-4] + iwarp.fpdu(send(1, b"abcd"))[:-5:-1])], recvs=1)
    yield row("one bit of a payload turned", "5044 8", (2, 0, 2), lambda s: [
        Raw(bytes(octet ^ (i == 40) for i, octet in enumerate(iwarp.fpdu(
            write(s.rw.stag, s.rw.address, b"!" * 64)))))])
    yield row("not a frame at all", "5044 8", (2, 0, 2),
              lambda s: [Raw(b"GET / HTTP/1.1\r\n\r\n" + bytes(70000))])

    def padded(ulpdu):
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += b"\xFF" * (-len(body) % 4)
        return Raw(body + struct.pack("<I", iwarp.crc32c(body)))

    yield row("pad is not zero", "5044 4.1", SURVIVES,
              lambda s: [padded(send(1, s.received(b"pad"))),
                         padded(write(s.rw.stag, s.rw.address, s.placed(s.rw, 0, b"pads!")))],
              recvs=1, done={1: SUCCESS})


def terminate_rows():
    """RFC 5040 5.4: a Terminate ends the stream and is never answered."""
    whole = bytes([0x01, 0, 0xE0, 0]) + struct.pack(">H", 46) + read_request(0, 0, 0)
    assert len(whole) == 52

    def said(payload, **header):
        return untagged(iwarp.TERMINATE, 2, 1, payload, **header)

    yield row("terminate", "5040 5.4", CLOSED, lambda s: [said(bytes(4))], recvs=1, reads=1)
    for layer in range(16):
        yield row(f"terminate of layer {layer}", "5040 5.4", CLOSED,
                  lambda s, layer=layer: [said(bytes([layer << 4 | layer, 0xAA, 0x1F, 0xFF]))])
    for count in (4, 5, 6, 7, 19, 23, 24, 25, 37, 51, 52):
        yield row(f"terminate cut to {count} octets", "5040 4.8", CLOSED,
                  lambda s, count=count: [said(whole[:count])], recvs=1)
    for count in (0, 1, 3):
        yield row(f"terminate of {count} octets", "5040 4.8", (0, 2, 0xFF),
                  lambda s, count=count: [said(bytes(count))])
    yield row("terminate one octet too long", "5041 7.1", (1, 2, 5),
              lambda s: [said(whole + b"!")])
    yield row("terminate of 60000 octets", "5041 7.1", (1, 2, 5), lambda s: [said(bytes(60000))])
    yield row("terminate that does not end", "5040 5.4", (0, 2, 0xFF),
              lambda s: [said(bytes(4), last=False)])
    yield row("terminate about a segment of 65535", "5040 4.8", CLOSED,
              lambda s: [said(b"\x11\x00\xC0\x00\xFF\xFF" + write(0, 0, b""))], reads=1)
    yield row("flood of terminates", "5040 5.4", CLOSED,
              lambda s: [Raw(iwarp.fpdu(said(bytes(4))) * 500)], recvs=1)


def read_rows():
    """RFC 5042 6.4.3.3: no more Read Requests at once than were agreed, which is 4."""
    def flood(s, count, size):
        return [Raw(b"".join(iwarp.fpdu(read_request(s.ro.stag, s.ro.address, size, msn))
                             for msn in range(1, count + 1)))]

    yield row("one read request too many", "5042 6.4.3.3", (1, 2, 2), lambda s: [
        flood(s, 4, 4096)[0], read_request(s.ro.stag, s.ro.address, 4096, 5)], answers=None)
    yield row("as many read requests as agreed", "5042 6.4.3.3", SURVIVES,
              lambda s: flood(s, 4, 1), answers=lambda s: [
                  response(0x51, 0x5100, s.victim.dump(s.ro, 0, 1))] * 4)


TABLES = (stag_rows, bounds_rows, access_rows, response_rows, continuation_rows, queue_rows,
          send_rows, opcode_rows, length_rows, terminate_rows, read_rows)
ROWS = [attack for table in TABLES for attack in table()]


@pytest.fixture(scope="module")
def scene(process):
    return Scene(process)


@pytest.mark.parametrize("begin", [Attacker.accepted, Attacker.connected],
                         ids=["initiator", "responder"])
@pytest.mark.parametrize("attack", ROWS, ids=[f"{row.name} ({row.rfc})" for row in ROWS])
def test_attack(victim, scene, attack, begin):
    run(victim, scene, attack, begin)
