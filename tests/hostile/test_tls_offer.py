# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks on victims that offer TLS behind the Request, and that have rules: a peer that takes the offer and goes on in the
clear, one that is not on the list, and bytes that somebody puts before the handshake. docs/extensions.md, docs/security.md."""

import os
import socket
import ssl
import struct

import ground
import iwarp
import pytest
from attacker import EVENT_ESTABLISHED, Attacker, Victim, connect_to, send, write
from certificates import Authority, variables
from test_tls import PROTOCOL_VERSION
from tls_peer import NAME, TlsSocket, context_of, said, wait_said
from tls_peer import authority, right  # noqa: F401

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module has no TLS")
EVENT_REJECTED = 8
TLS_OFFER = 0x02  # without 0x04: docs/extensions.md
DEPTHS = struct.pack(">HH", 4, 4)
START_TLS = iwarp.start_frame(key=iwarp.KEY_REPLY, flags=0x07, revision=2)
PLAIN_TOLD = "the peer speaks mpa without tls: run its program with --tls require"


def request(flags=TLS_OFFER, private=DEPTHS):
    return iwarp.start_frame(revision=2, flags=iwarp.CRC | iwarp.ENHANCED | flags, private=private)


def begin_victim(folder, files, **changes):
    env = {**variables(files, NAME), **changes}
    victim = Victim(os.environ["ANYWARP_BUILD"], folder, ANYWARP_LOG="info", **env)
    victim.log = folder / "stderr"
    return victim


@pytest.fixture(scope="module")
def process(tmp_path_factory, right):
    """In place of conftest.py's: its own two ends offer TLS to each other."""
    victim = begin_victim(tmp_path_factory.mktemp("offering"), right, ANYWARP_TLS="offer")
    yield victim
    victim.quit()


@pytest.fixture(scope="module")
def ruled(tmp_path_factory, right):
    """A victim that requires TLS by a rule, which lets in two names."""
    folder = tmp_path_factory.mktemp("ruled")
    (folder / "rules").write_text(f"# who is let in\nrequire remote={ground.ADDRESS} name={NAME},*.peers.example\n")
    victim = begin_victim(folder, right, ANYWARP_TLS="off", ANYWARP_TLS_RULES=str(folder / "rules"))
    yield victim
    victim.quit()


def recv_exactly(sock, count):
    octets = b""
    while len(octets) < count:
        more = sock.recv(count - len(octets))
        if not more:
            break
        octets += more
    return octets


def all_of(sock):
    try:
        return b"".join(iter(lambda: sock.recv(4096), b""))
    except ConnectionResetError:
        return b""


# --- a victim that offers

def test_a_stranger_is_answered_as_without_tls(victim):
    """Neither the frame that starts TLS, nor a bit of it, reaches a peer that has not offered."""
    for flags in (0, 0x04, 0x06, 0x08):
        with connect_to(victim) as sock:
            sock.sendall(request(flags))
            conn, _ = victim.numbers("accept", 0, 0, 4, 4, 64)
            reply = recv_exactly(sock, 20)
            assert reply[:16] == iwarp.KEY_REPLY and reply[16] & iwarp.ENHANCED and reply[16] & 0x07 != 0x07
            assert victim.ask("drop", conn) == "ok"


def within(sock, context):
    """The peer offers, and goes on within TLS."""
    sock.sendall(request())
    assert recv_exactly(sock, len(START_TLS)) == START_TLS
    return TlsSocket(sock, context)


def test_an_offer_is_taken_and_the_request_within_counts(victim, right):
    with connect_to(victim) as sock:
        secure = within(sock, context_of(right))
        assert victim.ask("refuse") == "0"  # the program has seen no Request yet
        secure.sendall(request(0, DEPTHS + b"within"))
        conn, _ = victim.numbers("accept", 0, 0, 4, 4, 64)
        assert secure.recv(20)[:16] == iwarp.KEY_REPLY
        assert victim.ask("drop", conn) == "ok"


# What a peer that has offered sends in the clear where its handshake is due.
IN_CLEAR = {
    "its request again": (request(), PLAIN_TOLD),
    "a request without an offer": (request(0), PLAIN_TOLD),
    "an fpdu": (iwarp.fpdu(send(1)), "the peer speaks neither tls nor mpa"),
    "the frame that starts tls": (START_TLS, PLAIN_TOLD),
    "nothing": (b"", "the peer closed without a tls record"),
}


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize("octets, log", IN_CLEAR.values(), ids=IN_CLEAR.keys())
def test_behind_an_offer_nothing_in_the_clear_counts(victim, octets, log, pipelined):
    """Also what came before the victim has answered, as in the attacks on STARTTLS of mail."""
    before = said(victim)
    with connect_to(victim) as sock:
        sock.sendall(request() + octets if pipelined else request())
        assert recv_exactly(sock, len(START_TLS)) == START_TLS
        if not pipelined:
            sock.sendall(octets)
        sock.shutdown(socket.SHUT_WR)
        rest = all_of(sock)
    assert not rest or rest[:6] == PROTOCOL_VERSION[:6]  # an alert
    wait_said(victim, before, log)
    assert victim.ask("refuse") == "0"


def test_an_offer_within_tls_starts_no_other(victim, right):
    with connect_to(victim) as sock:
        secure = within(sock, context_of(right))
        secure.sendall(request())
        conn, _ = victim.numbers("accept", 0, 0, 4, 4, 64)
        reply = secure.recv(20)
        assert reply[:16] == iwarp.KEY_REPLY and reply[16] & iwarp.ENHANCED
        assert victim.ask("drop", conn) == "ok"


def test_a_peer_of_another_ca_is_not_served_in_the_clear(victim, tmp_path, authority):
    other = Authority(tmp_path / "wrong").issue(NAME)._replace(ca=authority.cert)
    before = said(victim)
    with connect_to(victim) as sock, pytest.raises(ssl.SSLError):
        secure = within(sock, context_of(other))
        secure.sendall(request(0))
        secure.recv(1)
    wait_said(victim, before, "name the ca that issued it by --tls-ca")
    assert victim.ask("refuse") == "0"


def offered(victim, listener):
    """The victim connects, and offers; its connection, and the socket."""
    conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
    sock = listener.accept()[0]
    head = recv_exactly(sock, 20)
    recv_exactly(sock, struct.unpack(">H", head[18:])[0])
    return conn, sock, head


# What a server sends that has taken the victim's offer, in place of its part of the handshake.
BROKEN = {
    "a reply in the clear": iwarp.start_frame(key=iwarp.KEY_REPLY, revision=2, flags=iwarp.CRC | iwarp.ENHANCED, private=DEPTHS),
    "the frame again": START_TLS,
    "an fpdu": iwarp.fpdu(write(0, 0, b"")),
    "nothing": b"",
}


@pytest.mark.parametrize("octets", BROKEN.values(), ids=BROKEN.keys())
def test_a_victim_whose_offer_was_taken_does_not_go_on_in_the_clear(victim, octets):
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        listener.settimeout(2)
        conn, sock, head = offered(victim, listener)
        assert head[:16] == iwarp.KEY_REQUEST and head[16] & 0x06 == TLS_OFFER
        with sock:
            sock.sendall(START_TLS)
            assert recv_exactly(sock, 1) == b"\x16"
            sock.sendall(octets)
            sock.shutdown(socket.SHUT_WR)
            assert iwarp.KEY_REQUEST not in all_of(sock)
        with pytest.raises(TimeoutError):
            listener.accept()  # nor is there a second try
    assert victim.ask("drop", conn) == "ok"


def test_the_request_within_is_the_one_in_the_clear(victim, right):
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        conn, sock, _ = offered(victim, listener)
        with sock:
            sock.sendall(START_TLS)
            secure = TlsSocket(sock, context_of(right, server_side=True), server_side=True)
            again = secure.recv(4096)
            assert again[:16] == iwarp.KEY_REQUEST and again[16] & 0x07 == 0x06  # no more offer, and no shared memory
            secure.sendall(iwarp.start_frame(key=iwarp.KEY_REPLY, revision=2, flags=iwarp.CRC | iwarp.ENHANCED, private=DEPTHS))
            victim.ask("event", conn, EVENT_ESTABLISHED)
        assert victim.ask("drop", conn) == "ok"


# --- rules

STRANGERS = {
    "a name that is not listed": ("other", "DNS:other"),
    "a name below a listed one": ("below", f"DNS:a.{NAME}"),
    "the wildcard's own name": ("bare", "DNS:peers.example"),
    "two labels where the wildcard has one": ("deep", "DNS:a.b.peers.example"),
    "a listed name in the subject alone": (NAME, "DNS:other"),
}


@pytest.mark.parametrize("name, alternatives", STRANGERS.values(), ids=STRANGERS.keys())
def test_who_is_not_listed_is_refused_by_an_alert(ruled, authority, name, alternatives):
    before = said(ruled)
    files = authority.issue(name.replace(NAME, "subject"), alternatives)
    with connect_to(ruled) as sock, pytest.raises(ssl.SSLError) as refused:
        secure = TlsSocket(sock, context_of(files))
        secure.sendall(request(0))
        secure.recv(1)
    assert refused.value.reason.endswith("ALERT_BAD_CERTIFICATE")
    wait_said(ruled, before, "it has no name of line 2 of ANYWARP_TLS_RULES")
    assert ruled.ask("refuse") == "0"


@pytest.mark.parametrize("alternatives", [f"DNS:{NAME}", "DNS:a.peers.example", "DNS:other,DNS:b.peers.example", "DNS:*.peers.example"])
def test_who_is_listed_is_let_in(ruled, authority, alternatives):
    files = authority.issue("listed", alternatives)
    with connect_to(ruled) as sock:
        secure = TlsSocket(sock, context_of(files))
        secure.sendall(request(0))
        conn, _ = ruled.numbers("accept", 0, 0, 4, 4, 64)
        assert secure.recv(20)[:16] == iwarp.KEY_REPLY
        assert ruled.ask("drop", conn) == "ok"


@pytest.mark.parametrize("octets", [request(0), request(0x06), iwarp.start_frame(), b"MPA ID Req", b"MPA ID Rep Frame"],
                         ids=["enhanced", "usual", "plain", "half", "reply"])
def test_a_plain_peer_is_refused_where_a_rule_requires_tls(ruled, octets):
    before = said(ruled)
    with connect_to(ruled) as sock:
        sock.sendall(octets)
        sock.shutdown(socket.SHUT_WR)
        assert all_of(sock) == PROTOCOL_VERSION
    wait_said(ruled, before, PLAIN_TOLD)
    assert ruled.ask("refuse") == "0"


def test_a_peer_that_only_offers_is_led_into_tls_where_it_is_required(ruled, authority):
    with connect_to(ruled) as sock:
        secure = within(sock, context_of(authority.issue("listed", f"DNS:{NAME}")))
        secure.sendall(request(0))
        conn, _ = ruled.numbers("accept", 0, 0, 4, 4, 64)
        assert secure.recv(20)[:16] == iwarp.KEY_REPLY
        assert ruled.ask("drop", conn) == "ok"


def test_attackers_without_tls_are_served_by_a_victim_that_offers(victim):
    """All that tests/hostile does to a victim without TLS it does to this one as well."""
    with Attacker.accepted(victim) as peer:
        peer.drop()
