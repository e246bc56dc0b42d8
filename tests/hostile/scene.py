# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks in full operation as rows of tables: what each may use, how it is run, and the check that
the victim's answer is right to the octet."""

import collections
import struct

import iwarp
from attacker import (ALL_RIGHTS, ASYNC_ACCESS_ERR, ASYNC_ANY, ASYNC_QP_FATAL, ASYNC_REQ_ERR, END,
                      FLUSH, LOCAL_WRITE, PROT_ERR, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE, START,
                      SUCCESS, WR_READ, send, terminate_of)

RECV_OCTETS = 64
READ_OCTETS = 96
TOP = 2**64
SURVIVES, CLOSED = "survives", "closed"  # in place of a Terminate


class Raw(bytes):
    """Octets for the stream as they are, where others are ULPDUs."""


Row = collections.namedtuple("Row", "name rfc wanted attack recvs reads done answers mr opcode")


def row(name, rfc, wanted, attack, recvs=0, reads=0, done=(), answers=lambda s: [], mr=None,
        opcode=WR_READ):
    """attack(scene) gives what is sent; the last of it is the offender, all before it is allowed.
    recvs, reads: how many the victim posts before. done: the statuses of its WRs, receives first
    numbered from 1, Reads from 101; those not named flush. answers(scene): ULPDUs that come before
    the Terminate; None where that depends on who is faster. mr: a region that is deregistered
    before; opcode: what the victim's Reads are instead."""
    return Row(name, rfc, wanted, attack, recvs, reads, dict(done), answers, mr, opcode)


class Scene:
    """What an attack may use: the victim's regions, and its Reads under way."""

    def __init__(self, victim):
        self.victim = victim
        self.rw, self.ro = victim.region(), victim.region(access=REMOTE_READ)
        self.wo = victim.region(access=LOCAL_WRITE | REMOTE_WRITE)
        self.local = victim.region(access=LOCAL_WRITE)
        self.foreign = victim.region(pd=1)
        self.front, self.edge = victim.region(place=START), victim.region(place=END)
        self.odd = victim.region(length=777, place=END)
        self.empty = victim.region(length=1)
        self.atomic = victim.region(access=LOCAL_WRITE | REMOTE_ATOMIC, place=END)
        self.inbox, self.sink = victim.region(access=LOCAL_WRITE), victim.region(access=LOCAL_WRITE)
        self.gone = victim.region()
        victim.ask("dereg", self.gone.number)
        self.reused = victim.region()
        victim.ask("dereg", self.reused.number)
        self.renewed = victim.numbers("register", self.reused.number, 0, ALL_RIGHTS)[1]
        self.requests, self.sinks = [], []

    def placed(self, region, offset, octets):
        """octets, which the attack will place there by right."""
        self.victim.expect(region, offset, octets)
        return octets

    def received(self, octets, number=1, offset=0):
        """octets, which will be placed in receive number."""
        return self.placed(self.inbox, (number - 1) * RECV_OCTETS + offset, octets)

    def read(self, octets, number=1, offset=0):
        """octets, which will be placed by Read number."""
        return self.placed(self.sink, (number - 1) * READ_OCTETS + offset, octets)


def prepare(peer, scene, attack):
    """The victim posts its receives and Reads; ours to see are the Read Requests."""
    for i in range(attack.recvs):
        peer.ask_victim("recv", i + 1, scene.inbox.number, i * RECV_OCTETS, RECV_OCTETS)
    for i in range(attack.reads):
        octets = READ_OCTETS if attack.opcode == WR_READ else 8
        peer.ask_victim("send", 101 + i, attack.opcode, scene.sink.number, i * READ_OCTETS, octets,
                        0x77, 0x7700)
    scene.requests = [peer.recv_ulpdu() for _ in range(attack.reads)]
    scene.sinks = [read_sink(ulpdu) for ulpdu in scene.requests]


def read_sink(ulpdu):
    """The sink STag and offset of a Read Request."""
    return struct.unpack(">IQ", ulpdu[18:30])


def octets_of(units):
    return b"".join(unit if isinstance(unit, Raw) else iwarp.fpdu(unit) for unit in units)


def statuses(attack):
    """What all of the victim's WRs complete with."""
    numbers = [*range(1, attack.recvs + 1), *range(101, 101 + attack.reads)]
    return sorted(f"{number}:{attack.done.get(number, FLUSH)}" for number in numbers)


def prove_alive(peer, scene, attack):
    """The connection goes on: one more Send arrives."""
    done = [f"{number}:{status}" for number, status in attack.done.items()]
    peer.ask_victim("recv", 50, scene.inbox.number, 2048, RECV_OCTETS)
    peer.send_ulpdu(send(attack.recvs + 1, scene.placed(scene.inbox, 2048, b"alive")))
    assert sorted(peer.completions(len(done) + 1)) == sorted([*done, f"50:{SUCCESS}"])


def event_of(attack):
    """What the program hears of its QP: the peer may not do it, or asks wrongly, or all else, such as a
    fault of its own."""
    error = attack.wanted
    own = PROT_ERR in attack.done.values()
    if own or error == CLOSED or error[0] == 2 or error[1] == 0:
        return ASYNC_QP_FATAL
    ddp_version = (1, 1, 4)
    return ASYNC_ACCESS_ERR if error[1] == 1 and error != ddp_version else ASYNC_REQ_ERR


def check_end(scene, peer, attack, units, answers):
    """Exactly one Terminate, or none, then the end; and the program hears of it all."""
    found = peer.recv_all()
    offender = b"" if isinstance(units[-1], Raw) else units[-1]
    wanted = [] if attack.wanted == CLOSED else [terminate_of(attack.wanted, offender)]
    if answers is None:
        found = found[-1:]
    assert [ulpdu.hex() for ulpdu in found] == [ulpdu.hex() for ulpdu in (answers or []) + wanted]
    peer.wait_disconnected()
    assert int(scene.victim.ask("async", ASYNC_ANY, peer.qpn)) == event_of(attack)
    assert sorted(peer.completions(attack.recvs + attack.reads)) == statuses(attack)


def run(victim, scene, attack, begin):
    """One row, on a connection of its own."""
    peer = begin(victim)
    prepare(peer, scene, attack)
    if attack.mr:
        victim.ask("dereg", getattr(scene, attack.mr).number)
    units = attack.attack(scene)
    answers = attack.answers(scene) if attack.answers else None
    peer.send(octets_of(units))
    if attack.wanted == SURVIVES:
        assert [peer.recv_ulpdu() for _ in answers] == answers
        prove_alive(peer, scene, attack)
    else:
        check_end(scene, peer, attack, units, answers)
    if attack.mr:
        victim.ask("register", getattr(scene, attack.mr).number, 0, LOCAL_WRITE)
    peer.drop()
