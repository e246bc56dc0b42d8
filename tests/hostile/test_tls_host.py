# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Memory that two ends share under TLS (docs/host-path.md): an attacker of this host and user whose certificate is right, and
one who has proven nothing and stands beside: he knows no secret, so that what he makes is not taken for the peer's. Then what may,
and may not, come over the socket once the stream is in memory."""

import contextlib
import mmap
import os
import secrets
import socket
import struct
import subprocess
import sys

import ground
import iwarp
import pytest
import tls_records as tls
from attacker import AGREE, FLUSH, OFFER, SUCCESS, send, write
from tls_peer import TlsAttacker, TlsServer, TlsSocket, said, under_tls, wait_said
from tls_peer import authority, right  # noqa: F401

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module has no TLS")
HOST = 0x01
HELLO, VERDICT, LAST = b"\0\1", b"\0\2", b"\0\3"
VERSION = b"\x12\x06"  # Terminate: DDP, untagged, invalid version
ZEROS = bytes(16)
RING, LAYOUT = 256 * 1024, 4
SIZE = mmap.PAGESIZE + 2 * RING
SECRETS_AT, SIDES_AT, SIDE = 8, 128, 192
TAIL, HEAD = 0, 64  # of a side
UNTOLD = "the stream ended without tls's close_notify"


@pytest.fixture(scope="module")
def process(tmp_path_factory, right):
    """The victim moves with its first message, as do its own two ends."""
    yield from under_tls(tmp_path_factory.mktemp("victim"), right, ANYWARP_HOST_PATH="on")


class Memory:
    """The attacker's map of the memory, as initiator."""

    def __init__(self, hello):
        pid, number = struct.unpack(">II", hello[:8])
        with open(f"/proc/{pid}/fd/{number}", "r+b", buffering=0) as file:
            self.at = mmap.mmap(file.fileno(), SIZE)
        assert struct.unpack("<II", self.at[:SECRETS_AT]) == (LAYOUT, RING)
        self.hello_secret, self.verdict_secret = self.at[8:24], self.at[24:40]

    def number(self, side, place):
        return struct.unpack_from("<Q", self.at, SIDES_AT + side * SIDE + place)[0]

    def put(self, ulpdu):
        """An FPDU of the initiator's, which has no CRC there."""
        fpdu = iwarp.fpdu(ulpdu)[:-4] + bytes(4)
        tail = self.number(1, TAIL)
        start = mmap.PAGESIZE + RING + tail
        self.at[start:start + len(fpdu)] = fpdu
        struct.pack_into("<Q", self.at, SIDES_AT + SIDE + TAIL, tail + len(fpdu))


def offered(victim):
    """The victim has named its memory."""
    peer = TlsAttacker.started(victim, revision=2, flags=iwarp.CRC | iwarp.ENHANCED | OFFER | HOST, private=struct.pack(">HH", 4, 4))
    assert peer.reply_flags & HOST
    peer.send_ulpdu(write(0, 0, b""))
    hello = peer.recv_ulpdu()
    assert hello[:2] == HELLO and len(hello) == 30
    return peer, hello[2:]


def moved(victim):
    peer, hello = offered(victim)
    memory = Memory(hello)
    assert memory.hello_secret == hello[12:]
    peer.send_ulpdu(VERDICT + memory.verdict_secret)
    assert peer.recv_ulpdu() == LAST
    return peer, memory


def awaits(peer, number, arrives=True):
    """The ULPDU of one more Send, which the victim awaits."""
    region = peer.victim.region()
    octets = f"message {number}".encode()
    if arrives:
        peer.victim.expect(region, 0, octets)
    peer.ask_victim("recv", number, region.number, 0, 64)
    return send(number, octets)


def test_the_secret_is_in_nothing_that_can_be_heard(victim):
    """The hello is a record as the stream's others are."""
    peer, hello = offered(victim)
    with peer:
        assert len(TlsSocket.heard) > len(hello) and hello[12:] not in TlsSocket.heard and hello[:8] not in TlsSocket.heard
        peer.drop()


GUESSES = {
    "a guess": lambda hello: secrets.token_bytes(16),
    "the hello's own secret": lambda hello: hello[12:],
    "one bit beside the right one": lambda hello: bytes([Memory(hello).verdict_secret[0] ^ 1]) + Memory(hello).verdict_secret[1:],
    "half of the right one": lambda hello: Memory(hello).verdict_secret[:8] + bytes(8),
}


@pytest.mark.parametrize("guess", GUESSES.values(), ids=GUESSES.keys())
def test_who_has_not_opened_the_memory_is_not_let_into_it(victim, guess):
    peer, hello = offered(victim)
    with peer:
        awaits(peer, 1, arrives=False)
        peer.send_ulpdu(VERDICT + guess(hello))
        ended = peer.recv_ulpdu()
        assert ended[1] & 0xF == iwarp.TERMINATE and ended[18:20] == VERSION
        peer.wait_disconnected()
        assert peer.completions(1) == [f"1:{FLUSH}"]
        peer.drop()


def test_a_verdict_counts_once(victim):
    peer, memory = moved(victim)
    with peer:
        awaits(peer, 1, arrives=False)
        memory.put(VERDICT + memory.verdict_secret)
        peer.sock.sendall(b"\0")
        peer.wait_disconnected()
        assert peer.completions(1) == [f"1:{FLUSH}"]
        peer.drop()


# --- an initiator takes no memory but the proven peer's

FORGER = """
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.memfd_create(b"anywarp-host", 2)
os.ftruncate(fd, int(sys.argv[1]))
os.pwrite(fd, struct.pack("<II", 4, 256 * 1024) + bytes.fromhex(sys.argv[2]) + os.urandom(16), 0)
fcntl.fcntl(fd, 1033, 2 | 4)  # F_ADD_SEALS: F_SEAL_SHRINK, F_SEAL_GROW
print(fd, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def forge():
    """Another process of the user's, which has such memory with this secret: what a hello would name it by."""
    started = []

    def make(secret):
        process = subprocess.Popen([sys.executable, "-c", FORGER, str(SIZE), secret.hex()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        started.append(process)
        return struct.pack(">II", process.pid, int(process.stdout.readline()))
    yield make
    for process in started:
        process.communicate()


def connected(victim):
    """The victim is the initiator, and hears the peer's hello."""
    peer = TlsServer.connected(victim, flags=iwarp.CRC | AGREE | HOST)
    local, remote = peer.sock.getsockname()[1], peer.sock.getpeername()[1]
    return peer, struct.pack(">HH", local, remote)


def test_a_hello_that_is_right_is_taken(victim, forge):
    """Else the others would prove nothing."""
    secret = secrets.token_bytes(16)
    place = forge(secret)
    peer, ports = connected(victim)
    with peer:
        peer.send_ulpdu(HELLO + place + ports + secret)
        assert peer.recv_ulpdu() == VERDICT + Memory(place).verdict_secret
        peer.drop()


def swapped(ports):
    return ports[2:] + ports[:2]


FORGED = {
    "another secret": lambda forge, ports: forge(secrets.token_bytes(16)) + ports + secrets.token_bytes(16),
    "no secret": lambda forge, ports: forge(secrets.token_bytes(16)) + ports + ZEROS,
    "another connection's": lambda forge, ports: forge(b"s" * 16) + struct.pack(">HH", 1, 2) + b"s" * 16,
    "the ports of the other end": lambda forge, ports: forge(b"s" * 16) + swapped(ports) + b"s" * 16,
    "a process that is no more": lambda forge, ports: struct.pack(">II", 0x7FFFFFFF, 3) + ports + b"s" * 16,
    "a file that is no memory": lambda forge, ports: struct.pack(">II", os.getpid(), 0) + ports + b"s" * 16,
}


@pytest.mark.parametrize("make", FORGED.values(), ids=FORGED.keys())
def test_memory_of_another_is_not_taken(victim, forge, make):
    """The stream stays under TLS, and goes on."""
    before = said(victim)
    peer, ports = connected(victim)
    with peer:
        peer.send_ulpdu(HELLO + make(forge, ports))
        assert peer.recv_ulpdu() == VERDICT + ZEROS
        wait_said(victim, before, "host path not taken cause ")
        peer.send_ulpdu(awaits(peer, 1))
        assert peer.completions(1) == [f"1:{SUCCESS}"]
        peer.drop()


# --- over the socket, behind the move

LOST = {
    "tcp's end alone": (lambda peer, s: b"", UNTOLD),
    "bytes that are no record": (lambda peer, s: bytes(64), "tls: "),
    "a bell in the clear": (lambda peer, s: tls.clear(tls.DATA, b"\0"), "tls: "),
    "a bell that comes twice": (lambda peer, s: 2 * s.record(tls.DATA, b"\0"), "tls: "),
    "a bell that was changed": (lambda peer, s: s.record(tls.DATA, b"\0")[:-1] + b"\0", "tls: "),
    "another's bell": (lambda peer, s: (s.renew(), s.record(tls.DATA, b"\0"))[1], "tls: "),
    "half a bell": (lambda peer, s: s.record(tls.DATA, b"\0")[:-1], UNTOLD),
    "an alert": (lambda peer, s: s.record(tls.ALERT, b"\2\x28"), "alert"),
    "a second hello": (lambda peer, s: s.record(tls.HANDSHAKE, tls.message(tls.CLIENT_HELLO, bytes(64))), "tls: "),
}


@pytest.mark.parametrize("forge_records, log", LOST.values(), ids=LOST.keys())
def test_what_ends_the_stream_behind_the_move(victim, forge_records, log):
    """What the peer had written to the memory before comes first, and the end is none in order."""
    before = said(victim)
    peer, memory = moved(victim)
    with peer:
        memory.put(awaits(peer, 1))
        awaits(peer, 2, arrives=False)
        with contextlib.suppress(OSError):
            peer.sock.sock.sendall(forge_records(peer, peer.sock.sealer()))
            peer.sock.sock.shutdown(socket.SHUT_WR)
        peer.wait_disconnected()
        assert peer.completions(2) == [f"1:{SUCCESS}", f"2:{FLUSH}"]
        wait_said(victim, before, "stream lost cause ")
        assert log in said(victim)[len(before):]
        peer.drop()


def renewed(sealer, requested):
    record = sealer.record(tls.HANDSHAKE, tls.key_update(requested))
    sealer.renew()
    return record


BELLS = {
    "a bell": lambda s: s.record(tls.DATA, b"\0"),
    "a bell of many bytes": lambda s: s.record(tls.DATA, bytes(tls.CONTENT_MAX)),
    "bells without end": lambda s: b"".join(s.record(tls.DATA, b"\0") for _ in range(20000)),
    "large bells without end": lambda s: b"".join(s.record(tls.DATA, os.urandom(tls.CONTENT_MAX)) for _ in range(100)),
    "a bell behind new keys": lambda s: renewed(s, 0) + s.record(tls.DATA, b"\0"),
    "key updates that ask for others": lambda s: b"".join(renewed(s, 1) for _ in range(100)) + s.record(tls.DATA, b"\0"),
    "an fpdu, which is a bell there": lambda s: s.record(tls.DATA, iwarp.fpdu(send(1, b"of no message"))),
}


@pytest.mark.parametrize("ring", BELLS.values(), ids=BELLS.keys())
def test_what_may_come_behind_the_move(victim, ring):
    before = said(victim)
    peer, memory = moved(victim)
    with peer:
        sealer = peer.sock.sealer()
        rounds = victim.honest_rounds()
        memory.put(awaits(peer, 1))
        peer.sock.sock.sendall(ring(sealer))
        assert peer.completions(1) == [f"1:{SUCCESS}"]
        memory.put(awaits(peer, 2))
        peer.sock.sock.sendall(sealer.record(tls.DATA, b"\0"))
        assert peer.completions(1) == [f"2:{SUCCESS}"]
        victim.wait_honest(rounds)
        peer.sock.sock.sendall(sealer.record(tls.ALERT, b"\1\0"))
        peer.wait_disconnected()
        assert "stream lost" not in said(victim)[len(before):]
        peer.drop()


def test_tickets_behind_the_move(victim, forge):
    """Of a responder; its first records may be any, and an initiator's OpenSSL has them."""
    secret = secrets.token_bytes(16)
    place = forge(secret)
    peer, ports = connected(victim)
    with peer:
        sealer = peer.sock.sealer()
        peer.sock.sock.sendall(sealer.record(tls.HANDSHAKE, tls.new_session_ticket(1)) +
                               sealer.record(tls.DATA, iwarp.fpdu(HELLO + place + ports + secret)))
        assert peer.recv_ulpdu() == VERDICT + Memory(place).verdict_secret
        peer.sock.sock.sendall(sealer.record(tls.DATA, iwarp.fpdu(LAST)) + sealer.record(tls.HANDSHAKE, tls.new_session_ticket(2)) +
                               sealer.record(tls.DATA, b"\0"))
        awaits(peer, 1, arrives=False)
        peer.sock.sock.sendall(sealer.record(tls.ALERT, b"\1\0"))
        peer.wait_disconnected()
        peer.drop()
