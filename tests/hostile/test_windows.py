# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks on memory windows: those of another connection, those that are gone, and the octets of
the region around one. RFC 5042 6.1.1, 6.3.4 and 6.4.5, RFC 5040 5.3 and 7.2."""

import collections

import ground
import iwarp
import pytest
from attacker import (ALL_RIGHTS, LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE, SUCCESS,
                      Attacker, read_request, response, send, terminate_of, write)

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="libsiw has no windows")
MW_BIND = 16
TYPE_1, TYPE_2 = 1, 2
OFFSET, LENGTH = 1024, 512
CLEAN = "clean"

Window = collections.namedtuple("Window", "number stag address end")
Row = collections.namedtuple("Row", "wanted attack")


class Scene:
    """A region with windows of ours, of another connection's, and some that are gone."""

    def __init__(self, victim):
        self.victim = victim
        self.region = victim.region(access=ALL_RIGHTS | MW_BIND | REMOTE_ATOMIC)
        self.inbox = victim.region(access=LOCAL_WRITE)
        self.peer, self.other = Attacker.accepted(victim), Attacker.accepted(victim)
        self.ours = self.window(TYPE_2, self.peer)
        self.reads = self.window(TYPE_2, self.peer, REMOTE_READ)
        self.writes = self.window(TYPE_2, self.peer, REMOTE_WRITE)
        self.theirs = self.window(TYPE_2, self.other)
        self.shared = self.window(TYPE_1, self.other)
        self.freed = self.window(TYPE_2, self.peer)
        victim.ask("unbind", self.freed.number)
        self.moved = self.window(TYPE_1, self.peer)
        self.anew = int(victim.ask("rebind", self.moved.number, self.peer.conn, self.region.number,
                                   0, 64, REMOTE_WRITE))

    def window(self, kind, peer, access=REMOTE_READ | REMOTE_WRITE):
        number, stag = self.victim.numbers("window", kind, peer.conn, self.region.number, OFFSET,
                                           LENGTH, access)
        start = self.region.address + OFFSET
        return Window(number, stag, start, start + LENGTH)

    def placed(self, offset, octets):
        self.victim.expect(self.region, offset, octets)
        return octets

    def inv(self, stag, msn=1):
        """A Send with Invalidate into the receive of that number."""
        self.peer.ask_victim("recv", msn, self.inbox.number, msn * 64, 64)
        self.victim.expect(self.inbox, msn * 64, b"inv")
        return send(msn, b"inv", iwarp.SEND_INVALIDATE, invalidate=stag)

    def without_other(self, units, dropped):
        """units, when the other connection has ended, and its QP may be gone too."""
        self.other.sock.close()
        self.other.wait_disconnected()
        if dropped:
            self.other.drop()
            self.other = None
        return units

    def close(self):
        for window in (self.ours, self.reads, self.writes, self.theirs, self.shared, self.moved):
            self.victim.ask("unbind", window.number)
        self.peer.drop()
        if self.other:
            self.other.drop()
        self.victim.ask("dereg", self.region.number)


ROWS = {
    "write of all of it": Row(CLEAN, lambda s: [
        write(s.ours.stag, s.ours.address, s.placed(OFFSET, b"w" * LENGTH))]),
    "window of type 1 of the same pd": Row(CLEAN, lambda s: [
        write(s.shared.stag, s.shared.address, s.placed(OFFSET, b"1"))]),
    "one octet before": Row((1, 1, 1), lambda s: [write(s.ours.stag, s.ours.address - 1)]),
    "one octet behind": Row((1, 1, 1), lambda s: [write(s.ours.stag, s.ours.end)]),
    "one octet too many": Row((1, 1, 1), lambda s: [
        write(s.ours.stag, s.ours.address, b"!" * (LENGTH + 1))]),
    "read before": Row((0, 1, 1), lambda s: [read_request(s.ours.stag, s.ours.address - 1, 2)]),
    "read behind": Row((0, 1, 1), lambda s: [read_request(s.ours.stag, s.ours.end - 1, 2)]),
    "write where reads are allowed": Row((0, 1, 2), lambda s: [
        write(s.reads.stag, s.reads.address)]),
    "read where writes are allowed": Row((0, 1, 2), lambda s: [
        read_request(s.writes.stag, s.writes.address, 1)]),
    "write to another's": Row((1, 1, 2), lambda s: [write(s.theirs.stag, s.theirs.address)]),
    "read of another's": Row((0, 1, 3), lambda s: [
        read_request(s.theirs.stag, s.theirs.address, 1)]),
    "invalidation of another's": Row((0, 1, 9), lambda s: [s.inv(s.theirs.stag)]),
    "invalidation of all streams'": Row((0, 2, 9), lambda s: [s.inv(s.shared.stag)]),
    "invalidation of its region": Row((0, 2, 9), lambda s: [s.inv(s.region.stag)]),
    "write to a freed one": Row((1, 1, 0), lambda s: [write(s.freed.stag, s.freed.address)]),
    "read of a freed one": Row((0, 1, 0), lambda s: [
        read_request(s.freed.stag, s.freed.address, 1)]),
    "invalidation of a freed one": Row((0, 1, 0), lambda s: [s.inv(s.freed.stag)]),
    "its stag before it was bound anew": Row((1, 1, 0), lambda s: [
        write(s.moved.stag, s.moved.address)]),
    "bound anew, where it was": Row((1, 1, 1), lambda s: [write(s.anew, s.moved.address)]),
    "write to an invalidated one": Row((1, 1, 0), lambda s: [
        s.inv(s.ours.stag), write(s.ours.stag, s.ours.address)]),
    "read of an invalidated one": Row((0, 1, 0), lambda s: [
        s.inv(s.ours.stag), read_request(s.ours.stag, s.ours.address, 1)]),
    "invalidated twice": Row((0, 1, 0), lambda s: [s.inv(s.ours.stag), s.inv(s.ours.stag, 2)]),
    "invalidated in the middle of a write": Row((1, 1, 0), lambda s: [
        write(s.ours.stag, s.ours.address, s.placed(OFFSET, b"half"), last=False),
        s.inv(s.ours.stag), write(s.ours.stag, s.ours.address + 4)]),
    "another's, whose connection ended": Row((1, 1, 2), lambda s: s.without_other([
        write(s.theirs.stag, s.theirs.address)], dropped=False)),
    "another's, whose qp is gone": Row((1, 1, 0), lambda s: s.without_other([
        write(s.theirs.stag, s.theirs.address)], dropped=True)),
    "key of the next binding": Row((1, 1, 0), lambda s: [
        write(s.ours.stag & ~0xFF | (s.ours.stag + 1) & 0xFF, s.ours.address)]),
}


@pytest.fixture
def scene(victim):
    made = Scene(victim)
    yield made
    made.close()


@pytest.mark.parametrize("attack", ROWS.values(), ids=ROWS.keys())
def test_attack(scene, attack):
    units = attack.attack(scene)
    other_is_there = scene.other and scene.other.sock.fileno() >= 0
    scene.peer.send(b"".join(iwarp.fpdu(unit) for unit in units))
    if attack.wanted == CLEAN:
        scene.peer.send_ulpdu(read_request(0, 0, 0))
        assert scene.peer.recv_ulpdu() == response(0x51, 0x5100)
    else:
        assert scene.peer.recv_all() == [terminate_of(attack.wanted, units[-1])]
        scene.peer.wait_disconnected()
    if not other_is_there:
        return
    # Whatever was tried, the other connection's window is what it was.
    scene.other.send_ulpdu(write(scene.theirs.stag, scene.theirs.end - 4,
                                 scene.placed(OFFSET + LENGTH - 4, b"mine")))
    scene.other.send_ulpdu(read_request(0, 0, 0))
    assert scene.other.recv_ulpdu() == response(0x51, 0x5100)
