# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""More messages than receives, on more connections than may keep large buffers: each stream is held
with all that one read of its socket brought. ctest runs this also over a libibverbs.so.1 that was
built with -DNDEBUG, where an assertion would stop nothing. RFC 5042 6.4.1."""

import os
import signal

import ground
import iwarp
import pytest
from attacker import Attacker, read_request, response, send, terminate_of, untagged, write
from test_floods import POOL_KIB_MAX, victim  # noqa: F401

SANITIZED = bool(os.environ.get("ANYWARP_SAN"))
PEERS = 200
PLACES = 64  # docs/security.md
LARGE_KIB, SMALL_KIB = 256, 66
# A QP, its CQ and what an allocator loses.
CONN_KIB_MAX = 40
NO_BUFFER = (1, 2, 2)
OCTETS = 60000

pytestmark = pytest.mark.usefixtures("many_files")


def warm_up(peer, region):
    """TCP's window grows with what was taken."""
    peer.send(iwarp.fpdu(write(region.stag, region.address, b"w" * OCTETS)) * 8)
    peer.send_ulpdu(read_request(0, 0, 0))
    assert peer.recv_ulpdu() == response(0x51, 0x5100)


def sends(_):
    return [send(msn, b"s" * OCTETS) for msn in range(1, 5)]


def small_sends(_):
    """As a sockets program's peer may: keepalives, of no octets."""
    return [send(msn, b"") for msn in range(1, 9000)]


def immediates(region):
    """Each has its Write, which is placed before the stream is held."""
    imm = untagged(8, 0, 1, b"imm!" + OCTETS.to_bytes(4, "big"))
    rest = [write(region.stag, region.address, b"w" * OCTETS) for _ in range(3)]
    return [write(region.stag, region.address, b"w" * OCTETS), imm, *rest]


def offender_of(units):
    return next(unit for unit in units if not unit[0] & 0x80)


def flood(victim, peers, octets):
    """Everything is in the victim's sockets before it may read any of it."""
    os.kill(victim.process.pid, signal.SIGSTOP)
    try:
        for peer in peers:
            peer.sock.setblocking(False)
            sent = peer.sock.send(octets)
            assert sent > SMALL_KIB * 1024
            peer.sock.settimeout(60)
    finally:
        os.kill(victim.process.pid, signal.SIGCONT)


def first_peak_kib(victim):
    """0 over the module, whose memory is not the process's."""
    if ground.KERNEL:
        return 0
    reset_peak(victim)
    return peak_kib(victim)


def reset_peak(victim):
    with open(f"/proc/{victim.process.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak_kib(victim):
    with open(f"/proc/{victim.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def test_runs_over_the_library_that_is_meant(victim):  # noqa: F811
    with open(f"/proc/{victim.process.pid}/maps", encoding="ascii") as file:
        paths = {line.split()[-1] for line in file if "/libibverbs.so" in line}
    wanted = os.environ.get("LD_LIBRARY_PATH") or ground.libraries(os.environ["ANYWARP_BUILD"])
    assert {os.path.dirname(path) for path in paths} == {wanted}


@pytest.mark.parametrize("srq", [0, 1], ids=["rq", "srq"])
@pytest.mark.parametrize("attack", [sends, small_sends, immediates])
def test_more_messages_than_receives(victim, attack, srq):  # noqa: F811
    """Each costs what may be kept and no more, and ends in its Terminate a second later."""
    region = victim.region(length=1 << 16)
    victim.expect(region, 0, b"w" * OCTETS)
    peers = [Attacker.agreed(victim, srq=srq) for _ in range(PEERS)]
    for peer in peers:
        warm_up(peer, region)
    units = attack(region)
    octets = b"".join(map(iwarp.fpdu, units))
    before = first_peak_kib(victim)
    flood(victim, peers, octets)
    wanted = terminate_of(NO_BUFFER, offender_of(units))
    for peer in peers:
        assert peer.recv_all() == [wanted]
    if not SANITIZED and not ground.KERNEL:
        cost = peak_kib(victim) - before
        most = PLACES * LARGE_KIB + PEERS * (SMALL_KIB + CONN_KIB_MAX) + POOL_KIB_MAX
        assert cost < most, f"{cost} KiB"
    for peer in peers:
        peer.drop()
