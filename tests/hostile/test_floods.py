# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Peers that break no rule and cost what they can: halves of FPDUs that are never finished, Reads
whose answer is never taken, octets one at a time, connections without end. What each costs is
bounded and comes back when it is gone. RFC 5042 6.4.1, 6.4.2 and 6.4.4."""

import os
import resource
import time

import ground
import iwarp
import pytest
from attacker import BIG, REMOTE_READ, Attacker, connect_to, read_request, response, untagged, write

SANITIZED = bool(os.environ.get("ANYWARP_SAN"))
HALVES = 60 if SANITIZED else 600
READERS = 20 if SANITIZED else 150
CHURN = 100 if SANITIZED else 2000
# What one connection may cost this process, on top of the half FPDU that it keeps waiting. In the kernel of the tests,
# whose allocator puts red zones around everything, with both sockets.
CONN_KIB_MAX = 200 if ground.KERNEL else 64
# Buffers that are kept warm for whoever is next, however many there are.
POOL_KIB_MAX = (16 if ground.KERNEL else 40) * 1024
BATCH_KIB_MAX = 400
LONGEST_READ = (1 << 24 if ground.KERNEL else 1 << 32) - 1  # the module pins the region
CHURN_KIB_MAX = 20000 if SANITIZED else 3000 if ground.KERNEL else 1500


pytestmark = pytest.mark.usefixtures("many_files")


@pytest.fixture
def victim(own_victim):
    """A process of its own for each: what an allocator kept of the last would count otherwise."""
    return own_victim


def processor_seconds(victim):
    with open(f"/proc/{victim.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost_kib(victim, before, peers):
    """What each of so many connections costs, the pool's share taken off."""
    return max(0, victim.resident_kib() - before - POOL_KIB_MAX) / peers


def synchronise(peer):
    """The victim has used all that was sent up to here."""
    peer.send_ulpdu(read_request(0, 0, 0))
    assert peer.recv_ulpdu() == response(0x51, 0x5100)


def drop_all(victim, peers, fds):
    for peer in peers:
        peer.drop()
    victim.wait_until(lambda: victim.open_fds() <= fds, "the sockets to be closed")


def unread_octets(victim):
    """What TCP holds for the victim on its listener's port and the program has not read."""
    count = 0
    with open(f"/proc/{victim.process.pid}/net/tcp", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            local, state, queues = line.split()[1], line.split()[3], line.split()[4]
            if state == "01" and int(local.split(":")[1], 16) == victim.port:
                count += int(queues.split(":")[1], 16)
    return count


@pytest.mark.parametrize("half", [1, 2, 100, 1400, 60000])
def test_halves_of_fpdus(victim, half):
    """Each connection has sent enough to have had the largest buffers, and keeps half an FPDU."""
    region = victim.region(length=1 << 18)
    kib, fds = victim.resident_kib(), victim.open_fds()
    whole = iwarp.fpdu(write(region.stag, region.address, b"f" * 60000))
    victim.expect(region, 0, b"f" * 60000)
    start = (b"\xFF\xFF" + bytes(65535))[:half]
    peers = [Attacker.accepted(victim) for _ in range(HALVES)]
    for peer in peers:
        peer.send(whole * 5)
        synchronise(peer)
    for peer in peers:
        peer.send(whole * 4 + start)
    victim.wait_until(lambda: unread_octets(victim) == 0, "the halves to be read")
    each = cost_kib(victim, kib, HALVES)
    if not SANITIZED:
        assert each < half / 1024 + CONN_KIB_MAX, f"{each:.0f} KiB a connection"
    drop_all(victim, peers, fds)


def test_fpdu_that_comes_octet_by_octet(victim):
    """RFC 5042 6.4.4: an octet that finishes nothing costs no more for what came before it."""
    region = victim.region(length=1 << 16)
    octets = iwarp.fpdu(write(region.stag, region.address, b"o" * 60000))
    peers = [Attacker.accepted(victim) for _ in range(100)]
    for peer in peers:
        peer.send(octets[:59000])
    victim.wait_until(lambda: unread_octets(victim) == 0, "the first part to be read")
    began = processor_seconds(victim)
    for at in range(59000, 59100):
        for peer in peers:
            peer.send(octets[at:at + 1])
    victim.wait_until(lambda: unread_octets(victim) == 0, "the octets to be read")
    spent = processor_seconds(victim) - began
    # Over the module the octets are the work of whichever thread TCP runs in.
    assert ground.KERNEL or spent < (20 if SANITIZED else 1.5), f"{spent} s for 10000 octets"
    victim.expect(region, 0, b"o" * 60000)
    for peer in peers:
        peer.send(octets[59100:])
        synchronise(peer)
        peer.drop()


def test_answers_that_nobody_takes(victim):
    """As many of the longest Reads as were agreed, on many connections that read nothing."""
    region = victim.region(access=REMOTE_READ, length=LONGEST_READ + 1, place=BIG)
    kib, fds = victim.resident_kib() - ground.tcp_kib(), victim.open_fds()
    began = time.monotonic()
    peers = []
    for _ in range(READERS):
        peer = Attacker.accepted(victim)
        peer.send(b"".join(iwarp.fpdu(read_request(region.stag, region.address, LONGEST_READ, msn))
                           for msn in range(1, 5)))
        peers.append(peer)
    victim.wait_until(lambda: unread_octets(victim) == 0, "the Requests to be read")
    # Pages that are read for the first time count too, though none is the connection's; TCP's buffers of both ends do not.
    each = cost_kib(victim, kib + ground.tcp_kib(), READERS)
    if not SANITIZED:
        assert each < BATCH_KIB_MAX, f"{each:.0f} KiB a connection"
    assert time.monotonic() - began < 60
    drop_all(victim, peers, fds)


@pytest.mark.parametrize("ulpdu", [write(0, 0, b""), untagged(1, 1, 1, bytes(28))],
                         ids=["writes of nothing", "reads of nothing"])
def test_flood_of_the_smallest(victim, ulpdu):
    """RFC 5042 6.4.4: hundreds of thousands of messages that mean nothing; others are not held up
    meanwhile (the fixture's honest connection)."""
    peer = Attacker.accepted(victim)
    before = victim.honest_rounds()
    for start in range(0, 20000, 1000):
        if ulpdu[0] & 0x80:
            peer.send(iwarp.fpdu(ulpdu) * 5000)
            continue
        for msn in range(start + 1, start + 1001, 4):
            peer.send(b"".join(iwarp.fpdu(read_request(0, 0, 0, msn + i)) for i in range(4)))
            assert [peer.recv_ulpdu() for _ in range(4)] == [response(0x51, 0x5100)] * 4
    victim.wait_until(lambda: unread_octets(victim) == 0, "the flood to be read")
    victim.wait_honest(before, 5)
    peer.drop()


# The listeners of a process share a sixteenth of its files for those that have sent no whole Request.
STRANGERS = min(500, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 64)
REQUEST = iwarp.start_frame(private=b"p" * 500)
# The most KiB of each; in the kernel of the tests, as CONN_KIB_MAX.
FIRST_WORDS = {
    "nothing": (b"", 20 if ground.KERNEL else 2), "half a request": (REQUEST[:-1], 24 if ground.KERNEL else 2),
    "a request": (REQUEST, 48 if ground.KERNEL else 4),
}


def come(victim, strangers, octets, fds, count):
    """More of them, until there are count; what the victim has then."""
    while len(strangers) < count:
        strangers.append(connect_to(victim))
        strangers[-1].sendall(octets)
    victim.wait_until(lambda: unread_octets(victim) == 0 and victim.open_fds() == fds + count, "all of them to be heard")
    return victim.resident_kib()


@pytest.mark.parametrize("octets, kib_max", FIRST_WORDS.values(), ids=FIRST_WORDS)
def test_strangers_at_the_door(victim, octets, kib_max):
    """docs/security.md: what each costs who has connected, and has sent no more than its Request."""
    strangers, fds = [], victim.open_fds()
    first = come(victim, strangers, octets, fds, STRANGERS // 4)  # what the process needs once
    each = (come(victim, strangers, octets, fds, STRANGERS) - first) / (STRANGERS - STRANGERS // 4)
    if not SANITIZED:
        assert each < kib_max, f"{each:.1f} KiB a stranger"
    for stranger in strangers:
        stranger.close()
    victim.wait_until(lambda: victim.ask("refuse") and victim.open_fds() <= fds, "the end of all")


@pytest.mark.parametrize("end", ["fin", "rst", "garbage", "half"])
def test_connections_without_end(victim, end):
    """Neither memory nor files stay behind."""
    peers = 0
    kib = fds = None
    for number in range(CHURN):
        if number == CHURN // 4:
            kib, fds = victim.resident_kib(), victim.open_fds()
        peer = Attacker.accepted(victim)
        if end == "rst":
            peer.reset()
        elif end == "garbage":
            peer.send(bytes(64))
        elif end == "half":
            peer.send(b"\x40\x00half")
        peer.drop()
        peers += 1
    victim.wait_until(lambda: victim.open_fds() <= fds, "the sockets to be closed")
    assert victim.resident_kib() - kib < CHURN_KIB_MAX
