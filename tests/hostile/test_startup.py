# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks before full operation: what is not a right Request or Reply ends in a close without an
octet, in bounded time, and a new client is served all the while. RFC 5044 7.1, RFC 6581 9, RFC
5042 6.4.1 and 6.4.2."""

import os
import resource
import select
import socket
import struct
import time

import ground
import iwarp
import pytest
from attacker import (EVENT_DISCONNECTED, SECONDS_MAX, Attacker, Victim, send, terminate_of,
                      untagged, write)
from raw_peer import RawPeer

SANITIZED = bool(os.environ.get("ANYWARP_SAN"))
STARTUP_SECONDS_MAX = 20  # more than the product takes to give a silent peer up
STRANGERS = 500 if SANITIZED else 3000
HALF_OPEN_MAX = 256 if ground.KERNEL else 1100  # of the module: kmod/cm/half_open.h
SOME_KIB = 65536 if SANITIZED else 8192
REQUEST, REPLY = iwarp.KEY_REQUEST, iwarp.KEY_REPLY
CRC, ENHANCED, REJECT = iwarp.CRC, iwarp.ENHANCED, iwarp.REJECT
UNREACHABLE, CONNECT_ERROR, REJECTED = 7, 6, 8

pytestmark = pytest.mark.usefixtures("many_files")
frame = iwarp.start_frame


def words(ird, ord_, p2p=0, rtr=0):
    """RFC 6581 9: the words before the private data; rtr has the bits Send 1, Write 2, Read 4."""
    return struct.pack(">HH", p2p << 15 | (rtr & 1) << 14 | ird,
                       (rtr & 2) << 14 | (rtr & 4) << 12 | ord_)


def serves(victim):
    """A stranger who behaves is served now."""
    with Attacker.accepted(victim) as peer:
        peer.sock.shutdown(socket.SHUT_WR)
        assert peer.recv_all() == []
        peer.drop()


BAD_REQUESTS = {
    "nothing but a NUL": b"\0",
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "tls": bytes.fromhex("1603010200010001fc0303"),
    "first octet wrong": frame(key=b"NPA ID Req Frame"),
    "last octet of the key wrong": frame(key=b"MPA ID Req Framf"),
    "key in lower case": frame(key=b"mpa id req frame"),
    "half the key, then garbage": REQUEST[:8] + bytes(40),
    "a Reply: both are responders": frame(key=REPLY),
    "revision 0": frame(revision=0),
    "revision 3": frame(revision=3),
    "revision 255": frame(revision=255),
    "PD_Length 513": frame(private=bytes(513)),
    "PD_Length 513, nothing there": frame(private_length=513),
    "PD_Length 65535": frame(private_length=65535),
    "PD_Length 65535, all there": frame(private=bytes(65535)),
    "enhanced without its words": frame(revision=2, flags=CRC | ENHANCED),
    "enhanced with three octets": frame(revision=2, flags=CRC | ENHANCED, private=bytes(3)),
    "an FPDU": iwarp.fpdu(write(0, 0, b"")),
}


@pytest.mark.parametrize("octets", BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_bad_request_is_closed(victim, octets):
    with RawPeer.connect(*victim.where) as peer:
        peer.send(octets)
        assert peer.recv_end()
    assert victim.ask("refuse") == "0"
    serves(victim)


STRANGE_REQUESTS = {
    "R in a Request": {"flags": CRC | REJECT},
    "S in revision 1": {"flags": CRC | ENHANCED, "private": b"it is mine"},
    "reserved flags": {"flags": CRC | 0x0B},
    "512 octets": {"private": bytes(512)},
    "enhanced, 508 octets": {"revision": 2, "flags": CRC | ENHANCED,
                             "private": words(4, 4) + bytes(508)},
    "no depths at all": {"revision": 2, "flags": CRC | ENHANCED, "private": words(0, 0)},
    "depths of all ones": {"revision": 2, "flags": CRC | ENHANCED, "private": words(16383, 16383)},
    "depths of 16382": {"revision": 2, "flags": CRC | ENHANCED, "private": words(16382, 16382)},
    "peer to peer without an RTR": {"revision": 2, "flags": CRC | ENHANCED,
                                    "private": words(4, 4, p2p=1)},
    "RTRs without peer to peer": {"revision": 2, "flags": CRC | ENHANCED,
                                  "private": words(4, 4, rtr=7)},
}


@pytest.mark.parametrize("start", STRANGE_REQUESTS.values(), ids=STRANGE_REQUESTS.keys())
def test_strange_request_is_served(victim, start):
    """RFC 5044 7.1.1: bits that mean nothing are not checked. Depths are cut to our own."""
    ird = 0 if start.get("private", b"")[:4] == words(0, 0) else 4
    with Attacker.accepted(victim, ird=ird, ord=ird, **start) as peer:
        peer.send_ulpdu(send(1))
        assert peer.recv_all() == [terminate_of((1, 2, 2), send(1))]
        peer.drop()


def test_fpdu_before_the_reply(victim):
    """RFC 5044 7.1.2 forbids it; TCP cannot tell, so it is taken for the first FPDU."""
    with RawPeer.connect(*victim.where) as peer:
        peer.send(frame() + iwarp.fpdu(write(0, 0, b"")) + iwarp.fpdu(send(1)))
        conn = victim.numbers("accept", 0, 0, 4, 4, 64)[0]
        assert peer.recv_start_frame().key == REPLY
        assert peer.recv_terminate() == (1, 2, 2)
        assert peer.recv_end()
    victim.ask("drop", conn)


def test_request_twice(victim):
    """The second is what an FPDU must be, and is none: "MP" is the length of one."""
    with RawPeer.connect(*victim.where) as peer:
        peer.send(frame() * 2 + bytes(20000))
        conn = victim.numbers("accept", 0, 0, 4, 4, 64)[0]
        assert peer.recv_start_frame().key == REPLY
        assert peer.recv_end()
    victim.ask("event", conn, EVENT_DISCONNECTED)
    victim.ask("drop", conn)


@pytest.mark.parametrize("octets", [
    iwarp.fpdu(write(0, 0, b""), crc_flip=1), iwarp.fpdu(write(0, 0, b"")[:5], crc_flip=1),
    b"\xFF\xFF" + bytes(65542)], ids=["empty write", "short", "longest"])
def test_bad_crc_of_the_first_fpdu(victim, octets):
    """RFC 5044 7.1.2: a responder sends nothing before a valid FPDU, not even a Terminate."""
    with RawPeer.connect(*victim.where) as peer:
        peer.send(frame())
        conn = victim.numbers("accept", 0, 0, 4, 4, 64)[0]
        assert peer.recv_start_frame().key == REPLY
        peer.send(octets)
        assert peer.recv_end()
    victim.ask("event", conn, EVENT_DISCONNECTED)
    victim.ask("drop", conn)


def test_terminate_is_the_first_fpdu(victim):
    peer = Attacker.started(victim)
    peer.send_ulpdu(untagged(iwarp.TERMINATE, 2, 1, bytes(4)))
    assert peer.recv_all() == []
    peer.wait_disconnected()
    peer.drop()


BAD_REPLIES = {
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", None),
    "last octet of the key wrong": (frame(key=b"MPA ID Rep Framf"), None),
    "a Request: both are initiators": (frame(), None),
    "revision 0": (frame(key=REPLY, revision=0), None),
    "revision 3": (frame(key=REPLY, revision=3), None),
    "revision 255": (frame(key=REPLY, revision=255), None),
    "PD_Length 513": (frame(key=REPLY, private=bytes(513)), None),
    "PD_Length 65535": (frame(key=REPLY, private_length=65535), None),
    "enhanced without its words": (frame(key=REPLY, revision=2, flags=CRC | ENHANCED), None),
    "wants more reads than we serve": (frame(key=REPLY, revision=2, flags=CRC | ENHANCED,
                                             private=words(4, 5)), (2, 0, 6)),
    "wants 16382 reads": (frame(key=REPLY, revision=2, flags=CRC | ENHANCED,
                                private=words(4, 16382)), (2, 0, 6)),
}


@pytest.mark.parametrize("octets, error", BAD_REPLIES.values(), ids=BAD_REPLIES.keys())
def test_bad_reply_fails_the_connect(victim, octets, error):
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        listener.settimeout(SECONDS_MAX)
        conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
        sock, _ = listener.accept()
    with Attacker(sock, victim) as peer:
        assert peer.recv_start_frame().key == REQUEST
        peer.send(octets)
        if error:
            assert peer.recv_all() == [terminate_of(error)]
        else:
            assert peer.recv_end()
        assert failure(victim, conn) in (CONNECT_ERROR, UNREACHABLE, REJECTED)
    victim.ask("drop", conn)


def failure(victim, conn):
    """The event that tells of a Reply that is none; the program must hear of one."""
    return int(victim.ask("failed", conn))


@pytest.mark.parametrize("flags", [CRC | REJECT, REJECT], ids=["crc", "no crc"])
def test_reject_is_heard(victim, flags):
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        listener.settimeout(SECONDS_MAX)
        conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
        sock, _ = listener.accept()
    with Attacker(sock, victim) as peer:
        peer.recv_start_frame()
        peer.send(frame(key=REPLY, flags=flags, private=b"no"))
        assert failure(victim, conn) == REJECTED
    victim.ask("drop", conn)


def still_open(socks):
    """Those that the victim has not closed, found without waiting."""
    poller = select.poll()
    for sock in socks:
        poller.register(sock, select.POLLIN)
    closed = {fd for fd, _ in poller.poll(0)}
    return [sock for sock in socks if sock.fileno() not in closed]


def test_slow_start_ups_end_in_time(victim):
    """However a Request dribbles in, it has no longer than one that does not come at all."""
    octets = frame(private=bytes(512))
    socks = [socket.create_connection(victim.where) for _ in range(40)]
    began, sent = time.monotonic(), 0
    while left := still_open(socks):
        assert time.monotonic() < began + STARTUP_SECONDS_MAX
        for number, sock in enumerate(left):
            try:
                sock.send(octets[sent:sent + 1] if number % 4 else b"")
            except OSError:
                pass  # closed since
        sent += 1
        select.select([], [], [], 0.1)
    for sock in socks:
        sock.close()
    serves(victim)


def test_strangers_do_not_keep_others_out(victim):
    """Thousands connect, say nothing or half a Request, and stay. RFC 5042 6.4.1: what they cost is
    bounded, and a client that behaves is served at once."""
    kib, fds = victim.resident_kib(), victim.open_fds()
    socks, waits = [], []
    for number in range(STRANGERS):
        sock = socket.create_connection(victim.where, timeout=SECONDS_MAX)
        sock.send(frame(private=bytes(100))[:number % 100])
        socks.append(sock)
        if number % (STRANGERS // 10) == 0:
            began = time.monotonic()
            serves(victim)
            waits.append(time.monotonic() - began)
    assert max(waits) < 2, f"clients waited {waits} s"
    assert victim.open_fds() - fds <= HALF_OPEN_MAX
    # In the kernel the strangers' own sockets are, too: test_floods.py has what each costs.
    assert ground.KERNEL or victim.resident_kib() - kib < SOME_KIB
    for sock in socks:
        sock.close()
    victim.wait_until(lambda: victim.open_fds() <= fds, "the strangers' sockets to be closed")


def test_strangers_do_not_use_up_the_files(tmp_path):
    """The limit of open files is usually below what a listener would let strangers have."""
    victim = Victim(os.environ["ANYWARP_BUILD"], tmp_path)
    limit = victim.open_fds() + 40
    resource.prlimit(victim.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    socks, waits = [], []
    for number in range(300):
        sock = socket.create_connection(victim.where, timeout=SECONDS_MAX)
        sock.send(frame()[:number % 20])
        socks.append(sock)
        if number % 50 == 49:
            began = time.monotonic()
            serves(victim)
            waits.append(time.monotonic() - began)
    assert max(waits) < 2, f"clients waited {waits} s"
    for sock in socks:
        sock.close()
    victim.wait_honest(victim.honest_rounds())
    victim.quit()


def test_requests_that_nobody_accepts(victim):
    """Each is a whole Request, so the program hears of it: its backlog bounds them."""
    fds = victim.open_fds()
    socks = []
    for _ in range(STRANGERS // 2):
        sock = socket.create_connection(victim.where, timeout=SECONDS_MAX)
        sock.send(frame())
        socks.append(sock)
    assert victim.open_fds() - fds <= 2200
    for sock in socks:
        sock.close()
    victim.wait_until(lambda: victim.ask("refuse") == "0" and victim.open_fds() <= fds,
                      "the Requests to be gone")
    serves(victim)
