# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks with Atomic Writes and Flushes, agreed on as docs/extensions.md tells, or not. Run like
those of test_frames.py."""

import struct

import ground
import iwarp
import pytest
from attacker import AGREE, END, LOCAL_WRITE, OFFER, Attacker, untagged
from scene import SURVIVES, TOP, Scene, row, run
from test_extensions import ATOMIC_REQUEST, ATOMIC_RESPONSE, QN_ATOMIC, atomic

FLUSH_REQUEST, FLUSH_RESPONSE = 12, 13
ATOMIC_WRITE = 15
GLOBAL, PERSISTENT = 1, 2
FLUSH_GLOBAL = 1 << 8  # IBV_ACCESS_FLUSH_GLOBAL
RANGE, WHOLE = 0, 1
# In a Request beside OFFER, in a Reply in the place of AGREE.
PLACEMENT_OFFER, PLACEMENT_AGREE = 0x02, 0x04

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module offers neither")


def flush(stag, offset, length=8, kind=GLOBAL, level=RANGE, msn=1, octets=28, **header):
    payload = struct.pack(">HBBIIQQ", 0, kind, level, 0xF1, stag, offset % TOP, length % TOP) + bytes(100)
    return untagged(FLUSH_REQUEST, 1, msn, payload[:octets], **header)


def flush_rows():
    regions = {
        "no such stag": (lambda s: (s.flushed.stag ^ 0x100, s.flushed.address, 8), (0, 1, 0)),
        "deregistered": (lambda s: (s.gone.stag, s.gone.address, 8), (0, 1, 0)),
        "another pd": (lambda s: (s.foreign.stag, s.foreign.address, 8), (0, 1, 3)),
        "without the right": (lambda s: (s.rw.stag, s.rw.address, 8), (0, 1, 2)),
        "behind the end": (lambda s: (s.flushed.stag, s.flushed.end, 1), (0, 1, 1)),
        "one over the end": (lambda s: (s.flushed.stag, s.flushed.address, 4097), (0, 1, 1)),
        "before the start": (lambda s: (s.flushed.stag, s.flushed.address - 1, 1), (0, 1, 1)),
        "wrap": (lambda s: (s.flushed.stag, TOP - 4, 8), (0, 1, 4)),
        "all that 64 bits can say": (lambda s: (s.flushed.stag, s.flushed.address, TOP - 1), (0, 1, 4)),
    }
    for name, (where, error) in regions.items():
        yield row(f"flush, {name}", "extensions", error, lambda s, where=where: [flush(*where(s))])
    for kind in (PERSISTENT, GLOBAL | PERSISTENT):
        yield row(f"flush of kind {kind} of memory that is not kept", "extensions", (0, 1, 2), lambda s, kind=kind:
                  [flush(s.flushed.stag, s.flushed.address, kind=kind)])
    yield row("flush of the whole of what is not the peer's", "extensions", (0, 1, 2),
              lambda s: [flush(s.rw.stag, 0, 0, level=WHOLE)])
    for kind, level in ((0, 0), (4, 0), (255, 0), (1, 2), (1, 255)):
        yield row(f"flush of kind {kind}, level {level}", "extensions", (0, 2, 0xFF), lambda s, kind=kind, level=level:
                  [flush(s.flushed.stag, s.flushed.address, kind=kind, level=level)])
    for octets, error in {0: (0, 2, 0xFF), 27: (0, 2, 0xFF), 29: (1, 2, 5), 128: (1, 2, 5)}.items():
        yield row(f"flush request of {octets} octets", "extensions", error, lambda s, octets=octets:
                  [flush(s.flushed.stag, s.flushed.address, octets=octets)])
    yield row("flush request that does not end", "extensions", (0, 2, 0xFF),
              lambda s: [flush(s.flushed.stag, s.flushed.address, last=False)])
    yield row("flush request on the send queue", "extensions", (0, 2, 6),
              lambda s: [untagged(FLUSH_REQUEST, 0, 1, bytes(28))], recvs=1)
    yield row("flush response that nobody asked for", "extensions", (0, 2, 6),
              lambda s: [untagged(FLUSH_RESPONSE, QN_ATOMIC, 1, bytes(4))])
    yield row("flush response to a read", "extensions", (0, 2, 6),
              lambda s: [untagged(FLUSH_RESPONSE, QN_ATOMIC, 1, bytes(4))], reads=1)
    for level in (RANGE, WHOLE):
        yield row(f"flush as it was granted, level {level}", "extensions", SURVIVES, lambda s, level=level:
                  [flush(s.flushed.stag, s.flushed.address, 4096, level=level)],
                  answers=lambda s: [untagged(FLUSH_RESPONSE, QN_ATOMIC, 1, struct.pack(">I", 0xF1))])


def atomic_write(stag, offset, octets=b"8 octets"):
    return atomic(stag, offset, add=int.from_bytes(octets, "big"), operation=ATOMIC_WRITE)


def atomic_write_rows():
    yield row("atomic write to what may only be read", "extensions", (0, 1, 2),
              lambda s: [atomic_write(s.ro.stag, s.ro.address)])
    yield row("atomic write to what only atomics may change", "extensions", (0, 1, 2),
              lambda s: [atomic_write(s.atomic.stag, s.atomic.address)])
    yield row("atomic write, half behind the end", "extensions", (0, 1, 1),
              lambda s: [atomic_write(s.edge.stag, s.edge.end - 4)])
    yield row("atomic write, four off", "extensions", (0, 2, 7),
              lambda s: [atomic_write(s.edge.stag, s.edge.address + 4)])
    yield row("atomic write as it was granted", "extensions", SURVIVES,
              lambda s: [atomic_write(s.wo.stag, s.wo.address + 8, s.placed(s.wo, 8, b"8 octets"))],
              answers=lambda s: [untagged(ATOMIC_RESPONSE, QN_ATOMIC, 1, struct.pack(">IQ", 0xA7, 0))])


ROWS = [attack for table in (flush_rows, atomic_write_rows) for attack in table()]
UNKNOWN = [
    row("flush that was not agreed on", "extensions", (0, 2, 6), lambda s: [flush(s.flushed.stag, s.flushed.address)]),
    row("atomic write that was not agreed on", "extensions", (0, 2, 6),
        lambda s: [atomic_write(s.wo.stag, s.wo.address)]),
]


def offering(victim):
    peer = Attacker.accepted(victim, revision=2, flags=iwarp.CRC | iwarp.ENHANCED | OFFER | PLACEMENT_OFFER,
                             private=struct.pack(">HH", 4, 4))
    assert peer.reply_flags & (OFFER | AGREE) == PLACEMENT_AGREE
    return peer


def agreeing(victim):
    return Attacker.connected(victim, flags=iwarp.CRC | PLACEMENT_AGREE)


class PlacingScene(Scene):
    def __init__(self, victim):
        super().__init__(victim)
        self.flushed = victim.region(access=LOCAL_WRITE | FLUSH_GLOBAL, place=END)


@pytest.fixture(scope="module")
def scene(process):
    return PlacingScene(process)


@pytest.mark.parametrize("begin", [offering, agreeing], ids=["initiator", "responder"])
@pytest.mark.parametrize("attack", ROWS, ids=[f"{row.name} ({row.rfc})" for row in ROWS])
def test_attack(victim, scene, attack, begin):
    run(victim, scene, attack, begin)


@pytest.mark.parametrize("begin", [Attacker.agreed, Attacker.connected_agreed], ids=["initiator", "responder"])
@pytest.mark.parametrize("attack", UNKNOWN, ids=[row.name for row in UNKNOWN])
def test_attack_without_agreement(victim, scene, attack, begin):
    run(victim, scene, attack, begin)


def test_flood_of_flushes(victim, scene):
    """They share the depth that was agreed, here 4, with Reads."""
    peer = offering(victim)
    peer.send(b"".join(iwarp.fpdu(flush(scene.flushed.stag, scene.flushed.address, msn=msn)) for msn in range(1, 6)))
    last = peer.recv_all()[-1]
    assert last[1] == 0x47 and last[18:20] == b"\x12\x02"
    peer.drop()
