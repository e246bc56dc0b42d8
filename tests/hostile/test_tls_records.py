# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks by a peer whose certificate is right, and who makes each record itself: what may come behind the handshake, what must
not and by which alert it ends, and what of it may come without end. RFC 8446 4.6, 5 and 6."""

import contextlib
import os
import ssl

import ground
import iwarp
import pytest
import tls_records as tls
from attacker import FLUSH, SUCCESS, send
from tls_peer import TlsAttacker, TlsServer, said, wait_said
from tls_peer import authority, process, right  # noqa: F401

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module has no TLS")


def receives(peer, number, arrives=True):
    """One more Send, which the victim awaits."""
    region = peer.victim.region()
    octets = f"message {number}".encode()
    if arrives:
        peer.victim.expect(region, 0, octets)
    peer.ask_victim("recv", number, region.number, 0, 64)
    return iwarp.fpdu(send(number, octets))


def alert_of(peer):
    """The alert by which the victim ends the session, by Python's name for it."""
    with pytest.raises((ssl.SSLError, ConnectionError)) as ended:
        while peer.sock.recv(1 << 16):
            pass
    return getattr(ended.value, "reason", repr(ended.value))


UNEXPECTED, ILLEGAL, OVERFLOW = "UNEXPECTED_MESSAGE", "ILLEGAL_PARAMETER", "RECORD_OVERFLOW"
# By the sealer's records, or in the clear, and the alert that is due.
REFUSED = {
    "a second client hello": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.CLIENT_HELLO, bytes(64))), UNEXPECTED),
    "a second certificate": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.CERTIFICATE, bytes(4))), UNEXPECTED),
    "a second finished": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.FINISHED, bytes(48))), UNEXPECTED),
    "the end of early data": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.END_OF_EARLY_DATA)), UNEXPECTED),
    "a server's ticket": (lambda s: s.record(tls.HANDSHAKE, tls.new_session_ticket(1)), UNEXPECTED),
    "a certificate request": (lambda s: s.record(tls.HANDSHAKE, tls.certificate_request()), UNEXPECTED),
    "a message of no kind": (lambda s: s.record(tls.HANDSHAKE, tls.message(99)), UNEXPECTED),
    "a key update of no kind": (lambda s: s.record(tls.HANDSHAKE, tls.key_update(2)), ILLEGAL),
    "a key update too long": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.KEY_UPDATE, bytes(2))), ILLEGAL),
    "data behind a key update": (lambda s: s.record(tls.HANDSHAKE, tls.key_update(0) + tls.key_update(0)), UNEXPECTED),
    "data within a message": (lambda s: s.record(tls.HANDSHAKE, tls.key_update(0)[:2]) + s.record(tls.DATA, b"x"), UNEXPECTED),
    "no message at all": (lambda s: s.record(tls.HANDSHAKE, b""), UNEXPECTED),
    "change cipher spec": (lambda s: s.record(tls.CHANGE_CIPHER_SPEC, b"\1"), UNEXPECTED),
    "change cipher spec in the clear": (lambda s: tls.clear(tls.CHANGE_CIPHER_SPEC, b"\1"), UNEXPECTED),
    "a heartbeat": (lambda s: s.record(tls.HEARTBEAT, b"\1\0\1x" + bytes(16)), UNEXPECTED),
    "a type that is none": (lambda s: s.record(99, b"x"), UNEXPECTED),
    "padding alone": (lambda s: s.record(None, b"", padding=100), UNEXPECTED),
    "one byte too many": (lambda s: s.record(tls.DATA, bytes(tls.CONTENT_MAX + 1)), OVERFLOW),
    "a record too long": (lambda s: tls.clear(tls.DATA, bytes(tls.CONTENT_MAX + 257)), OVERFLOW),
    "a record too short": (lambda s: tls.clear(tls.DATA, bytes(tls.TAG)), "BAD_RECORD_MAC"),
    "another's keys": (lambda s: (s.renew(), s.record(tls.DATA, b"x"))[1], "BAD_RECORD_MAC"),
    "a record left out": (lambda s: (s.record(tls.DATA, b"x"), s.record(tls.DATA, b"x"))[1], "BAD_RECORD_MAC"),
    "half an alert": (lambda s: s.record(tls.ALERT, b"\2"), UNEXPECTED),
    "two alerts": (lambda s: s.record(tls.ALERT, b"\1\x5a\1\x5a"), UNEXPECTED),
}


@pytest.mark.parametrize("forge, alert", REFUSED.values(), ids=REFUSED.keys())
def test_what_no_peer_may_send_ends_the_stream_by_an_alert(victim, forge, alert):
    """And what stands before it has been placed, nothing behind it."""
    before = said(victim)
    with TlsAttacker.accepted(victim) as peer:
        first, second = receives(peer, 1), receives(peer, 2, arrives=False)
        sealer = peer.sock.sealer()
        with contextlib.suppress(OSError):
            peer.sock.sock.sendall(sealer.record(tls.DATA, first) + forge(sealer) + sealer.record(tls.DATA, second))
        assert alert in alert_of(peer)
        peer.wait_disconnected()
        assert peer.completions(2) == [f"1:{SUCCESS}", f"2:{FLUSH}"]
        wait_said(victim, before, "stream lost cause tls: ")
        peer.drop()


def renewed(sealer, requested):
    """A key update, and the keys behind it."""
    record = sealer.record(tls.HANDSHAKE, tls.key_update(requested))
    sealer.renew()
    return record


# Odd, but right: the FPDU between arrives.
TAKEN = {
    "padding": lambda s, fpdu: s.record(tls.DATA, fpdu, padding=1000),
    "as much padding as there may be": lambda s, fpdu: s.record(tls.DATA, fpdu, padding=tls.CONTENT_MAX - len(fpdu)),
    "records of nothing": lambda s, fpdu: b"".join(
        s.record(tls.DATA, part) for octet in fpdu for part in (b"", bytes([octet]))),
    "a key update": lambda s, fpdu: renewed(s, 0) + s.record(tls.DATA, fpdu),
    "a key update that asks for another": lambda s, fpdu: renewed(s, 1) + s.record(tls.DATA, fpdu),
    "key updates within an fpdu": lambda s, fpdu: b"".join(renewed(s, n % 2) + s.record(tls.DATA, fpdu[n:n + 1])
                                                           for n in range(len(fpdu))),
    "a key update byte by byte": lambda s, fpdu: b"".join(
        s.record(tls.HANDSHAKE, bytes([octet])) for octet in tls.key_update(0)) + (s.renew() or s.record(tls.DATA, fpdu)),
    "an alert that ends nothing": lambda s, fpdu: s.record(tls.DATA, fpdu[:7]) + s.record(tls.ALERT, b"\1\x5a") +
    s.record(tls.DATA, fpdu[7:]),
}


@pytest.mark.parametrize("make", TAKEN.values(), ids=TAKEN.keys())
@pytest.mark.parametrize("cut", [1, 1000, None])
def test_what_a_peer_may_send_beside_data(victim, make, cut):
    with TlsAttacker.accepted(victim) as peer:
        first, second = receives(peer, 1), receives(peer, 2)
        sealer = peer.sock.sealer()
        peer.sock.cut = cut
        peer.sock.flush(make(sealer, first) + sealer.record(tls.DATA, second) + sealer.record(tls.ALERT, b"\1\0"))
        assert peer.completions(2) == [f"1:{SUCCESS}", f"2:{SUCCESS}"]
        assert peer.sock.recv(1) == b""
        peer.wait_disconnected()
        peer.drop()


def test_a_server_may_send_tickets(victim):
    """Between the handshake and data, and more than one."""
    with TlsServer.connected(victim) as peer:
        first = receives(peer, 1)
        sealer = peer.sock.sealer()
        peer.sock.flush(sealer.record(tls.HANDSHAKE, tls.new_session_ticket(1) + tls.new_session_ticket(2)) + sealer.record(tls.DATA, first))
        assert peer.completions(1) == [f"1:{SUCCESS}"]
        peer.drop()


# Of a server. A victim that has offered no authentication behind the handshake may not be asked for it (RFC 8446 4.6.2).
REFUSED_OF_A_SERVER = {
    "a certificate request": (lambda s: s.record(tls.HANDSHAKE, tls.certificate_request()), UNEXPECTED),
    "a hello request": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.HELLO_REQUEST)), UNEXPECTED),
    "encrypted extensions": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.ENCRYPTED_EXTENSIONS, bytes(2))), UNEXPECTED),
    "half a ticket": (lambda s: s.record(tls.HANDSHAKE, tls.message(tls.NEW_SESSION_TICKET, bytes(7))), "DECODE_ERROR"),
}


@pytest.mark.parametrize("forge, alert", REFUSED_OF_A_SERVER.values(), ids=REFUSED_OF_A_SERVER.keys())
def test_what_no_server_may_send(victim, forge, alert):
    with TlsServer.connected(victim) as peer:
        receives(peer, 1, arrives=False)
        with contextlib.suppress(OSError):
            peer.sock.sock.sendall(forge(peer.sock.sealer()))
        assert alert in alert_of(peer)
        peer.wait_disconnected()
        assert peer.completions(1) == [f"1:{FLUSH}"]
        peer.drop()


# --- what may come without end

FLOOD = 20000
SANITIZED = bool(os.environ.get("ANYWARP_SAN"))
GROWTH_KIB_MAX = 1024  # a sanitizer keeps what was freed
# Of a peer that reads nothing meanwhile, and why the victim ends its stream; None: it goes on.
FLOODS = {
    "key updates": (TlsAttacker, lambda s: renewed(s, 0), None),
    "key updates that ask for others": (TlsAttacker, lambda s: renewed(s, 1), None),
    "tickets": (TlsServer, lambda s: s.record(tls.HANDSHAKE, tls.new_session_ticket(1)), None),
    "records of nothing": (TlsAttacker, lambda s: s.record(tls.DATA, b""), "tls: record too small"),
    "padding": (TlsAttacker, lambda s: s.record(tls.DATA, b"", padding=tls.CONTENT_MAX), "tls: record too small"),
    "warnings": (TlsAttacker, lambda s: s.record(tls.ALERT, b"\1\x5a"), "tls: too many warn alerts"),
}


@pytest.mark.parametrize("kind, make, log", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_stops_nobody_else(victim, kind, make, log):
    """Nor does it make the victim grow."""
    before = said(victim)
    with (kind.connected if kind is TlsServer else kind.accepted)(victim) as peer:
        fpdu = receives(peer, 1, arrives=not log)
        sealer = peer.sock.sealer()
        octets = b"".join(make(sealer) for _ in range(FLOOD if not log else 100))
        rounds, kib = victim.honest_rounds(), victim.resident_kib()
        with contextlib.suppress(OSError):
            peer.sock.sock.sendall(octets + sealer.record(tls.DATA, fpdu))
        victim.wait_honest(rounds)
        assert peer.completions(1) == [f"1:{FLUSH if log else SUCCESS}"]
        assert SANITIZED or victim.resident_kib() < kib + GROWTH_KIB_MAX
        peer.drop()
    if log:
        wait_said(victim, before, log)
