# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks with the messages of RFC 7306, agreed on as docs/extensions.md tells. Run like those of
test_frames.py."""

import struct

import ground
import iwarp
import pytest
from attacker import (SUCCESS, WR_FETCH_ADD, Attacker, read_request, response, send, untagged,
                      write)
from scene import SURVIVES, TOP, Scene, row, run

IMM, IMM_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE = 8, 9, 10, 11
QN_ATOMIC = 3
OF_SEND = 0xFFFFFFFF
FETCH_ADD, CMP_SWAP = 0, 2
ALL_ONES = TOP - 1


def imm(length, msn=1, opcode=IMM, octets=8, **header):
    return untagged(opcode, 0, msn, (b"imm!" + struct.pack(">I", length) + b"!")[:octets], **header)


def atomic(stag, offset, add=1, operation=FETCH_ADD, msn=1, octets=52, compare=0, **header):
    masks = (0, 0) if operation == FETCH_ADD else (ALL_ONES, ALL_ONES)
    payload = struct.pack(">IIIQQQQQ", operation, 0xA7, stag, offset % TOP, add, masks[0], compare,
                          masks[1]) + bytes(100)
    return untagged(ATOMIC_REQUEST, 1, msn, payload[:octets], **header)


def original(s, request=0, change=0, octets=12, **header):
    """The answer to a request of the victim's, whose identifier stands behind its operation."""
    identifier = struct.unpack(">I", s.requests[request][22:26])[0] ^ change
    payload = struct.pack(">IQ", identifier, 0x0807060504030201) + bytes(9)
    return untagged(ATOMIC_RESPONSE, QN_ATOMIC, header.pop("msn", 1), payload[:octets], **header)


def written(s, octets=b"four", last=True, offset=0):
    return write(s.rw.stag, s.rw.address + offset, s.placed(s.rw, offset, octets), last=last)


def immediate_rows():
    yield row("immediate without a receive", "5041 7.1", (1, 2, 2), lambda s: [imm(0)])
    for octets in (0, 4, 7, 9):
        yield row(f"immediate of {octets} octets", "7306 6.3", (0, 2, 0xFF),
                  lambda s, octets=octets: [imm(0, octets=octets)], recvs=1)
    yield row("immediate that does not end", "7306 6.3", (0, 2, 0xFF),
              lambda s: [imm(0, last=False)], recvs=1)
    for length in (1, 2**31, 2**31 + 1, 2**32 - 2):
        yield row(f"immediate of a write of {length} that never was", "extensions", (0, 2, 0xFF),
                  lambda s, length=length: [imm(length)], recvs=1)
    for length in (3, 5):
        yield row(f"immediate says {length} of a write of 4", "extensions", (0, 2, 0xFF),
                  lambda s, length=length: [written(s), imm(length)], recvs=1)
    yield row("immediate of a write that goes on", "extensions", (0, 2, 0xFF),
              lambda s: [written(s, last=False), imm(4)], recvs=1)
    yield row("immediate of the write before the last", "extensions", (0, 2, 0xFF),
              lambda s: [written(s), written(s, b"three", offset=8), imm(4)], recvs=1)
    yield row("write completed twice", "extensions", (0, 2, 0xFF),
              lambda s: [written(s), imm(4), imm(4, msn=2)], recvs=2, done={1: SUCCESS})
    yield row("immediate of a send, solicited", "extensions", (0, 2, 0xFF),
              lambda s: [imm(OF_SEND, opcode=IMM_SE)], recvs=1)
    for opcode in (iwarp.SEND_INVALIDATE, iwarp.SEND_SE_INVALIDATE):
        yield row(f"immediate, then opcode {opcode}", "extensions", (0, 2, 6),
                  lambda s, opcode=opcode: [imm(OF_SEND), send(2, opcode=opcode,
                                                               invalidate=s.rw.stag)], recvs=1)
    yield row("immediate after immediate of a send", "extensions", (0, 2, 6),
              lambda s: [imm(OF_SEND), imm(OF_SEND, msn=2)], recvs=1)
    yield row("immediate in the middle of a send", "extensions", (0, 2, 6), lambda s: [
        send(1, s.received(b"half"), last=False), imm(0, mo=4)], recvs=2)
    yield row("immediate with an msn that is not due", "5041 7.1", (1, 2, 3),
              lambda s: [imm(0, msn=2)], recvs=2)
    yield row("immediate at an offset", "5041 7.1", (1, 2, 4), lambda s: [imm(0, mo=8)], recvs=1)
    yield row("immediate on the read queue", "7306 4", (0, 2, 6),
              lambda s: [untagged(IMM, 1, 1, bytes(8))], recvs=1)
    yield row("immediate of a write as it was", "extensions", SURVIVES,
              lambda s: [written(s, b"two", last=False), written(s, b"part", offset=3), imm(7)],
              recvs=1, done={1: SUCCESS})


def atomic_rows():
    regions = {
        "no such stag": (lambda s: (s.atomic.stag ^ 0x100, s.atomic.address), (0, 1, 0)),
        "deregistered": (lambda s: (s.gone.stag, s.gone.address), (0, 1, 0)),
        "another pd": (lambda s: (s.foreign.stag, s.foreign.address), (0, 1, 3)),
        "without the right": (lambda s: (s.rw.stag, s.rw.address), (0, 1, 2)),
        "behind the end": (lambda s: (s.atomic.stag, s.atomic.end), (0, 1, 1)),
        "eight before": (lambda s: (s.atomic.stag, s.atomic.address - 8), (0, 1, 1)),
        "half behind the end": (lambda s: (s.atomic.stag, s.atomic.end - 4), (0, 1, 1)),
        "wrap": (lambda s: (s.atomic.stag, TOP - 4), (0, 1, 4)),
        "top": (lambda s: (s.atomic.stag, TOP - 8), (0, 1, 1)),
        "one off": (lambda s: (s.atomic.stag, s.atomic.address + 1), (0, 2, 7)),
        "four off": (lambda s: (s.atomic.stag, s.atomic.address + 4), (0, 2, 7)),
    }
    for name, (where, error) in regions.items():
        for operation in (FETCH_ADD, CMP_SWAP):
            yield row(f"atomic {operation}, {name}", "7306 8.2", error,
                      lambda s, where=where, operation=operation:
                      [atomic(*where(s), operation=operation)])
    for operation in (1, 3, 7, 15):
        yield row(f"atomic operation {operation}", "7306 5.2.1", (0, 2, 6), lambda s,
                  operation=operation: [atomic(s.atomic.stag, s.atomic.address,
                                               operation=operation)])
    for octets, error in {0: (0, 2, 0xFF), 28: (0, 2, 0xFF), 51: (0, 2, 0xFF), 53: (1, 2, 5),
                          152: (1, 2, 5)}.items():
        yield row(f"atomic request of {octets} octets", "7306 5.2.1", error,
                  lambda s, octets=octets:
                  [atomic(s.atomic.stag, s.atomic.address, octets=octets)])
    yield row("atomic request that does not end", "7306 5.2.1", (0, 2, 0xFF),
              lambda s: [atomic(s.atomic.stag, s.atomic.address, last=False)])
    yield row("atomic request on the send queue", "7306 4", (0, 2, 6),
              lambda s: [untagged(ATOMIC_REQUEST, 0, 1, bytes(52))], recvs=1)
    yield row("fetchadd of nothing tells that they are there", "7306 1.1", SURVIVES,
              lambda s: [atomic(s.atomic.stag, s.atomic.end - 8, add=0)],
              answers=lambda s: [untagged(ATOMIC_RESPONSE, QN_ATOMIC, 1, struct.pack(
                  ">IQ", 0xA7, int.from_bytes(s.victim.dump(s.atomic, 4088, 8), "little")))])
    yield row("write to an atomic region", "5040 4.8", (0, 1, 2),
              lambda s: [write(s.atomic.stag, s.atomic.address)])
    yield row("read of an atomic region", "5040 4.8", (0, 1, 2),
              lambda s: [read_request(s.atomic.stag, s.atomic.address, 8)])


def atomic_response_rows():
    yield row("atomic response that nobody asked for", "7306 8.2", (0, 2, 6),
              lambda s: [untagged(ATOMIC_RESPONSE, QN_ATOMIC, 1, bytes(12))])
    yield row("atomic response to a read", "7306 5.2.2", (0, 2, 6),
              lambda s: [untagged(ATOMIC_RESPONSE, QN_ATOMIC, 1, bytes(12))], reads=1)
    rows = {
        "of another request": ((0, 2, 0xFF), lambda s: [original(s, change=1)]),
        "of the second request first": ((0, 2, 0xFF), lambda s: [original(s, request=1)]),
        "of 11 octets": ((0, 2, 0xFF), lambda s: [original(s, octets=11)]),
        "of no octets": ((0, 2, 0xFF), lambda s: [original(s, octets=0)]),
        "of 13 octets": ((1, 2, 5), lambda s: [original(s, octets=13)]),
        "that does not end": ((0, 2, 0xFF), lambda s: [original(s, last=False)]),
        "with msn 2": ((1, 2, 3), lambda s: [original(s, msn=2)]),
        "with msn 0": ((1, 2, 3), lambda s: [original(s, msn=0)]),
        "at an offset": ((1, 2, 4), lambda s: [original(s, mo=4)]),
        "on the send queue": ((0, 2, 6), lambda s: [untagged(ATOMIC_RESPONSE, 0, 1, bytes(12))]),
        "as a read response": ((0, 2, 6), lambda s: [response(0xA7, 0, b"!" * 8)]),
    }
    for name, (error, attack) in rows.items():
        yield row(f"atomic response {name}", "7306 5.2.2", error, attack, reads=2,
                  opcode=WR_FETCH_ADD)
    yield row("atomic response twice", "7306 5.2.2", (0, 2, 6), lambda s: [
        s.read(bytes(range(1, 9))) and original(s), original(s, msn=2)],
              reads=1, done={101: SUCCESS}, opcode=WR_FETCH_ADD)
    yield row("atomic response as it was asked for", "7306 5.2.2", SURVIVES,
              lambda s: [s.read(bytes(range(1, 9))) and original(s)], reads=1, done={101: SUCCESS},
              opcode=WR_FETCH_ADD)


ROWS = [attack for table in (immediate_rows, atomic_rows, atomic_response_rows)
        for attack in table()]
# The atomics that the region lets the peer have.
GRANTED = {attack.name for attack in atomic_rows() if attack.wanted in (SURVIVES, (0, 2, 7))}


@pytest.fixture(scope="module")
def scene(process):
    return Scene(process)


def skip_what_module_has_not(attack, begin):
    if not ground.KERNEL:
        return
    if attack.opcode == WR_FETCH_ADD:
        pytest.skip("libsiw posts no atomics")
    if attack.name in GRANTED and begin == Attacker.agreed:
        pytest.skip("iw_cm lets the peer of a QP that accepts Write and Read, no more")


@pytest.mark.parametrize("begin", [Attacker.agreed, Attacker.connected_agreed],
                         ids=["initiator", "responder"])
@pytest.mark.parametrize("attack", ROWS, ids=[f"{row.name} ({row.rfc})" for row in ROWS])
def test_attack(victim, scene, attack, begin):
    skip_what_module_has_not(attack, begin)
    run(victim, scene, attack, begin)


def test_flood_of_atomics(victim, scene):
    """RFC 7306 5.3: they share the depth that was agreed, here 4, with Reads."""
    begin = Attacker.connected_agreed if ground.KERNEL else Attacker.agreed
    peer = begin(victim)
    peer.send(b"".join(iwarp.fpdu(atomic(scene.atomic.stag, scene.atomic.address, add=0, msn=msn))
                       for msn in range(1, 6)))
    last = peer.recv_all()[-1]
    assert last[1] == 0x47 and last[18:20] == b"\x12\x02"
    peer.drop()
