# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks within TLS's handshake: what must not be offered, what is dragged out or repeated, and servers that are not for MPA.
RFC 8446 2.3, 4.2.10, 4.4 and 5; RFC 7301 3.2."""

import contextlib
import socket
import ssl
import subprocess

import ground
import iwarp
import pytest
import tls_records as tls
from attacker import SECONDS_MAX, connect_to
from tls_peer import ALPN, NAME, SlowAttacker, TlsSocket, context_of, said, wait_said
from tls_peer import authority, process, right  # noqa: F401

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module has no TLS")


def hello_of(context):
    """The first flight of a client."""
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def answer_to(victim, octets):
    """All that the victim sends until it ends the connection."""
    with connect_to(victim) as sock:
        answer = b""
        with contextlib.suppress(OSError):
            sock.sendall(octets)
            answer = b"".join(iter(lambda: sock.recv(4096), b""))
    return answer


UNEXPECTED_MESSAGE, ILLEGAL_PARAMETER, DECODE_ERROR = 10, 47, 50


def alert(number):
    return tls.clear(tls.ALERT, bytes([2, number]))


SEALED_ALERT = bytes([tls.DATA, 3, 3, 0, 2 + 1 + tls.TAG])  # the header of one under the handshake's keys
HELLOS = {
    "behind another message": (lambda hello: tls.clear(tls.HANDSHAKE, tls.message(tls.FINISHED, bytes(48))) + hello, UNEXPECTED_MESSAGE),
    "behind data": (lambda hello: tls.clear(tls.DATA, b"MPA ID Req Frame") + hello, UNEXPECTED_MESSAGE),
    "of no bytes": (lambda hello: tls.clear(tls.HANDSHAKE, tls.message(tls.CLIENT_HELLO)), DECODE_ERROR),
    "of 16 MiB": (lambda hello: tls.clear(tls.HANDSHAKE, bytes([tls.CLIENT_HELLO]) + b"\xff\xff\xff" + bytes(100)), ILLEGAL_PARAMETER),
    "twice": (lambda hello: hello + hello, None),
    "and change cipher spec without end": (lambda hello: hello + tls.clear(tls.CHANGE_CIPHER_SPEC, b"\1") * 1000, None),
    "and a wrong change cipher spec": (lambda hello: hello + tls.clear(tls.CHANGE_CIPHER_SPEC, b"\2"), None),
    "and the request in the clear": (lambda hello: hello + tls.clear(tls.DATA, iwarp.start_frame()), None),
}


@pytest.mark.parametrize("make, number", HELLOS.values(), ids=HELLOS.keys())
def test_a_hello_that_is_wrong(victim, right, make, number):  # noqa: F811
    """number: of the alert, where the victim has no keys yet."""
    before = said(victim)
    answer = answer_to(victim, make(hello_of(context_of(right))))
    assert answer == alert(number) if number else answer[-len(SEALED_ALERT) - 2 - 1 - tls.TAG:].startswith(SEALED_ALERT)
    wait_said(victim, before, "connection refused peer")
    assert victim.ask("refuse") == "0"


def openssl(*words, **how):
    return subprocess.Popen(["openssl", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)


@pytest.fixture(scope="module")
def session_of_another(process, right, tmp_path_factory):  # noqa: F811
    """A session with a ticket for early data, from a server that has the victim's very name and protocol."""
    kept = tmp_path_factory.mktemp("session") / "session"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = openssl("s_server", "-accept", f"127.0.0.1:{port}", "-cert", right.cert, "-key", right.key, "-CAfile", right.ca, "-Verify", 1,
                     "-alpn", ALPN, "-tls1_3", "-early_data", "-naccept", 1, stdin=subprocess.PIPE)
    assert any(b"ACCEPT" in line for line in iter(server.stdout.readline, b""))
    client = openssl("s_client", "-connect", f"127.0.0.1:{port}", *identity(right), "-sess_out", kept, stdin=subprocess.PIPE)
    process.wait_until(lambda: kept.exists() and b"END SSL SESSION" in kept.read_bytes(), "a ticket")
    client.communicate(timeout=SECONDS_MAX)
    server.communicate(timeout=SECONDS_MAX)
    return kept


def identity(files):
    return "-cert", files.cert, "-key", files.key, "-CAfile", files.ca, "-alpn", ALPN, "-servername", NAME, "-tls1_3"


def test_early_data_reaches_nobody(victim, right, session_of_another, tmp_path):  # noqa: F811
    """What is in it might be a repetition (RFC 8446 8): the victim takes neither the ticket nor the Request that comes with it, and
    goes on with a handshake of its own."""
    early = tmp_path / "early"
    early.write_bytes(iwarp.start_frame())
    before = said(victim)
    client = openssl("s_client", "-connect", ":".join(map(str, victim.where)), *identity(right), "-sess_in", session_of_another,
                     "-early_data", early, stdin=subprocess.PIPE)
    wait_said(victim, before, "connection secured by tls")
    assert victim.ask("refuse") == "0"
    told = client.communicate(timeout=SECONDS_MAX)[0]
    assert b"Early data was rejected" in told and b"New, TLSv1.3" in told


def test_a_ticket_of_the_victims_is_for_no_early_data(victim, right, tmp_path):  # noqa: F811
    kept = tmp_path / "session"
    client = openssl("s_client", "-connect", ":".join(map(str, victim.where)), *identity(right), "-sess_out", kept, stdin=subprocess.PIPE)
    victim.wait_until(lambda: kept.exists() and b"END SSL SESSION" in kept.read_bytes(), "a ticket")
    client.communicate(timeout=SECONDS_MAX)
    told = subprocess.run(["openssl", "sess_id", "-in", kept, "-text", "-noout"], check=True, capture_output=True).stdout
    assert b"TLS session ticket:" in told and b"Max Early Data: 0\n" in told


def test_a_hello_may_come_byte_by_byte(victim):
    with SlowAttacker.accepted(victim) as peer:
        peer.drop()


# What a victim that has connected finds of its server, by which alert it goes, and what it says.
SERVERS = {
    "for clients alone": ("clientAuth", ALPN, "UNSUPPORTED_CERTIFICATE", "make one for both clientAuth and serverAuth there"),
    "without the protocol": ("serverAuth,clientAuth", None, "close_notify", "the peer speaks tls, but not for mpa"),
}


@pytest.mark.parametrize("usage, alpn, end, log", SERVERS.values(), ids=SERVERS.keys())
def test_a_server_that_is_not_the_one_is_told(victim, authority, usage, alpn, end, log):  # noqa: F811
    """And gets no Request."""
    before = said(victim)
    files = authority.issue("server", f"DNS:{NAME}", usage=usage)
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
        context = context_of(files, alpn=(alpn,) if alpn else (), server_side=True)
        context.num_tickets = 0
        with listener.accept()[0] as accepted:
            try:
                sock = TlsSocket(accepted, context, server_side=True)
                told = sock.tls.read(1) if sock.recv(1) else "close_notify"
            except ssl.SSLError as error:
                told = error.reason
    assert end in told
    victim.ask("event", conn, 6)
    wait_said(victim, before, log)
    assert victim.ask("drop", conn) == "ok"
