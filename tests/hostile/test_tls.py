# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Attacks on a victim that requires TLS: peers that are not who they should be, and streams that somebody between the two
ends has cut or changed. RFC 8446 4.4.2.4, 5 and 6; RFC 7301 3.2. What is refused is refused by the alert that TLS has for it,
and the log names cause and remedy."""

import contextlib
import socket
import ssl

import ground
import iwarp
import pytest
from attacker import FLUSH, SUCCESS, connect_to, send, write
from certificates import Authority, Files
from tls_peer import NAME, TlsAttacker, TlsSocket, context_of, said, wait_said
from tls_peer import authority, process, right, stranger  # noqa: F401

pytestmark = pytest.mark.skipif(ground.KERNEL, reason="the module has no TLS")
ALERT, FATAL = 21, 2  # RFC 8446 5.1 and 6
NO_APPLICATION_PROTOCOL = 120
PROTOCOL_VERSION = bytes([ALERT, 3, 3, 0, 2, FATAL, 70])
NO_TLS = "the peer speaks neither tls nor mpa"


# --- who the peer is

class Stranger:
    """How a peer begins: its files, and what it says in its hello."""

    def __init__(self, files, alert, log, **how):
        self.files, self.alert, self.log, self.how = files, alert, log, how


def issued_by(authority, issuer):
    """A certificate by another that was not made to issue any, and the chain to the CA."""
    files = authority.issue("child", f"DNS:{NAME}", by=issuer)
    files.cert.write_bytes(files.cert.read_bytes() + issuer.cert.read_bytes())
    return files


def by_itself(authority, _):
    alone = Authority(authority.folder / "alone")
    return Files(alone.cert, alone.key, authority.cert)


def chained(authority, count):
    files = authority.issue("chained", f"DNS:{NAME}")
    files.cert.write_bytes(files.cert.read_bytes() + authority.cert.read_bytes() * count)
    return files


STRANGERS = {
    "no certificate": Stranger(lambda a, s: a.issue("none")._replace(cert=None), "CERTIFICATE_REQUIRED", "the peer has no certificate"),
    "another ca": Stranger(lambda a, s: s.issue(NAME)._replace(ca=a.cert), "UNKNOWN_CA", "name the ca that issued it by --tls-ca"),
    "expired": Stranger(lambda a, s: a.issue("expired", f"DNS:{NAME}", days=-1), "CERTIFICATE_EXPIRED", "certificate has expired: renew it there"),
    "another name": Stranger(lambda a, s: a.issue("other"), "BAD_CERTIFICATE", "hostname mismatch: make one with the name of --tls-name"),
    "a name in the subject alone": Stranger(lambda a, s: a.issue(NAME, "DNS:other"), "BAD_CERTIFICATE", "hostname mismatch"),
    "for servers alone": Stranger(lambda a, s: a.issue("server", f"DNS:{NAME}", usage="serverAuth"), "UNSUPPORTED_CERTIFICATE",
                                  "make one for both clientAuth and serverAuth"),
    "by one of the same ca, which is none itself": Stranger(lambda a, s: issued_by(a, a.issue("no-ca")), "UNKNOWN_CA", "invalid CA certificate"),
    "by itself": Stranger(by_itself, "UNKNOWN_CA", "name the ca that issued it by --tls-ca"),
    "a chain without end": Stranger(lambda a, s: chained(a, 400), "ILLEGAL_PARAMETER", "excessive message size"),
    "no protocol": Stranger(lambda a, s: a.issue("plain", f"DNS:{NAME}"), "NO_APPLICATION_PROTOCOL", "asks for another protocol inside tls, or for none", alpn=()),
    "another protocol": Stranger(lambda a, s: a.issue("http", f"DNS:{NAME}"), "NO_APPLICATION_PROTOCOL", "asks for another protocol inside tls, or for none", alpn=("http/1.1", "h2")),
    "tls 1.2": Stranger(lambda a, s: a.issue("old", f"DNS:{NAME}"), "PROTOCOL_VERSION", "the peer does not speak tls 1.3",
                        most=ssl.TLSVersion.TLSv1_2),
}


def begin(victim, context):
    """The peer says all that it can before it hears an alert: its Request as well."""
    sock = TlsSocket(connect_to(victim), context)
    sock.sendall(iwarp.start_frame())
    return sock.recv(1)


@pytest.mark.parametrize("stranger_row", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_is_refused_by_an_alert(victim, authority, stranger, stranger_row):
    before = said(victim)
    files = stranger_row.files(authority, stranger)
    with pytest.raises(ssl.SSLError) as refused:
        begin(victim, context_of(files, **stranger_row.how))
    # Python has no name for some alerts, which come in the clear.
    assert refused.value.reason is None or refused.value.reason.endswith(f"ALERT_{stranger_row.alert}"), refused.value
    assert refused.value.reason or TlsSocket.heard == bytes([ALERT, 3, 3, 0, 2, FATAL, NO_APPLICATION_PROTOCOL])
    wait_said(victim, before, stranger_row.log)
    assert victim.ask("refuse") == "0"
    with TlsAttacker.accepted(victim) as peer:
        peer.drop()


PLAIN = {
    "an mpa request": (iwarp.start_frame(), "the peer speaks mpa without tls: run its program with --tls require"),
    "an enhanced one": (iwarp.start_frame(revision=2, flags=iwarp.CRC | iwarp.ENHANCED, private=bytes(4)), "the peer speaks mpa without tls"),
    "another protocol": (b"GET / HTTP/1.1\r\n\r\n", NO_TLS),
    "zeroes": (bytes(64), NO_TLS),
    "an alert": (bytes([ALERT, 3, 1, 0, 2, FATAL, 40]), "tls: "),
    "a hello that is none": (bytes.fromhex("1603010200010001fc0303") + bytes(506), "tls: "),
    "half a hello": (bytes.fromhex("1603010200010001fc0303"), "the peer closed in the middle of the tls handshake"),
    "nothing": (b"", "the peer closed without a tls record: does its program run with --tls require?"),
}


@pytest.mark.parametrize("octets, log", PLAIN.values(), ids=PLAIN.keys())
def test_a_peer_without_tls_gets_no_mpa(victim, octets, log):
    before = said(victim)
    with connect_to(victim) as sock:
        sock.sendall(octets)
        sock.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: sock.recv(4096), b""))
    assert answer == PROTOCOL_VERSION if octets and octets[0] not in (ALERT, 22) else not answer or answer[0] == ALERT
    wait_said(victim, before, log)
    assert victim.ask("refuse") == "0"


def test_a_client_of_ours_refuses_each_server_that_is_not_the_one(victim, authority, stranger):
    """And sends it no MPA Request."""
    for files, log in [(stranger.issue("victims-too", f"DNS:{NAME}"), "name the ca that issued it by --tls-ca"),
                       (authority.issue("another"), "hostname mismatch: make one with the name of --tls-name"),
                       (authority.issue("over", f"DNS:{NAME}", days=-1), "certificate has expired: renew it there")]:
        before = said(victim)
        with socket.create_server((ground.ADDRESS, 0)) as listener:
            conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
            accepted = listener.accept()[0]
            with accepted, pytest.raises((ssl.SSLError, ConnectionError)):
                TlsSocket(accepted, context_of(files._replace(ca=authority.cert), server_side=True), server_side=True).recv(1)
        victim.ask("event", conn, 6)
        wait_said(victim, before, log)
        assert victim.ask("drop", conn) == "ok"


def test_a_client_of_ours_refuses_a_server_without_tls(victim):
    before = said(victim)
    with socket.create_server((ground.ADDRESS, 0)) as listener:
        conn = victim.numbers("connect", listener.getsockname()[1], 0, 4, 4)[0]
        with listener.accept()[0] as sock:
            hello = sock.recv(4096)
            assert hello[0] == 22 and iwarp.KEY_REQUEST not in hello
            sock.sendall(iwarp.start_frame(key=iwarp.KEY_REPLY))
            victim.ask("event", conn, 6)
    wait_said(victim, before, "the peer speaks mpa without tls: run its program with --tls require")
    assert victim.ask("drop", conn) == "ok"


# --- the stream

def receives(peer, region, number):
    """One more Send arrives, whose octets are right."""
    octets = f"message {number}".encode()
    peer.victim.expect(region, 64 * number, octets)
    peer.ask_victim("recv", number, region.number, 64 * number, 64)
    return send(number, octets)


@pytest.mark.parametrize("cut", [1, 5, 6, 21, 1000, None])
def test_records_may_be_cut_anywhere(victim, cut):
    region = victim.region()
    with TlsAttacker.accepted(victim) as peer:
        peer.sock.cut = cut
        for number in (1, 2):
            peer.send_ulpdu(receives(peer, region, number))
        assert peer.completions(2) == [f"1:{SUCCESS}", f"2:{SUCCESS}"]
        peer.drop()


def test_an_fpdu_may_lie_in_many_records_and_many_in_one(victim):
    region = victim.region()
    with TlsAttacker.accepted(victim) as peer:
        first, second, third = (iwarp.fpdu(receives(peer, region, number)) for number in (1, 2, 3))
        for at in range(len(first)):
            peer.send(first[at:at + 1])
        peer.send(second + third)
        assert peer.completions(3) == [f"{number}:{SUCCESS}" for number in (1, 2, 3)]
        peer.drop()


def test_close_notify_is_the_end_that_a_peer_makes(victim):
    before = said(victim)
    with TlsAttacker.accepted(victim) as peer:
        peer.ask_victim("recv", 1, victim.region().number, 0, 64)
        peer.sock.close_notify()
        assert peer.recv_all() == []
        peer.wait_disconnected()
        assert peer.completions(1) == [f"1:{FLUSH}"]
        peer.drop()
    assert "close_notify" not in said(victim)[len(before):]


def flip(records):
    return records[:-1] + bytes([records[-1] ^ 1])


# What somebody between the two ends may do to the records of a Send, and what the victim says.
CHANGES = {
    "cut before it": (lambda records: b"", "the stream ended without tls's close_notify"),
    "cut in its middle": (lambda records: records[:-7], "the stream ended without tls's close_notify"),
    "cut in its header": (lambda records: records[:3], "the stream ended without tls's close_notify"),
    "one bit changed": (flip, "tls: "),
    "the length changed": (lambda records: records[:4] + bytes([records[4] - 1]) + records[5:], "tls: "),
    "another type": (lambda records: bytes([22]) + records[1:], "tls: "),
    "garbage": (lambda records: bytes(range(256)), "tls: "),
    "an fpdu in the clear": (lambda records: iwarp.fpdu(send(1)), "tls: "),
    "an alert in the clear": (lambda records: bytes([ALERT, 3, 3, 0, 2, 1, 0]), "tls: "),
    "17 KiB": (lambda records: records[:3] + b"\xff\xff" + bytes(70000), "tls: "),
}


@pytest.mark.parametrize("change, log", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_stream_ends_and_places_nothing(victim, change, log):
    before = said(victim)
    region = victim.region()
    with TlsAttacker.accepted(victim) as peer:
        peer.ask_victim("recv", 1, region.number, 0, 64)
        records = peer.sock.records(iwarp.fpdu(send(1, b"not to be placed")))
        # The victim resets the stream once it has seen enough, maybe before all is said.
        with contextlib.suppress(OSError):
            peer.sock.sock.sendall(change(records))
            peer.sock.sock.shutdown(socket.SHUT_WR)
        peer.wait_disconnected()
        assert peer.completions(1) == [f"1:{FLUSH}"]
        wait_said(victim, before, log)
        peer.drop()


def test_a_record_that_comes_twice_ends_the_stream(victim):
    region = victim.region()
    with TlsAttacker.accepted(victim) as peer:
        records = peer.sock.records(iwarp.fpdu(receives(peer, region, 1)))
        peer.ask_victim("recv", 2, region.number, 128, 64)
        peer.sock.sock.sendall(records + records)
        peer.wait_disconnected()
        assert peer.completions(2) == [f"1:{SUCCESS}", f"2:{FLUSH}"]
        peer.drop()


def test_an_fpdu_that_is_wrong_is_answered_under_tls(victim):
    """The Terminate, and then close_notify: what comes behind TCP's FIN alone would be cut."""
    with TlsAttacker.accepted(victim) as peer:
        peer.send_ulpdu(write(0x51, 0, b"x"))
        assert len(peer.recv_all()) == 1
        peer.drop()


def test_a_hundred_silent_peers_keep_nobody_out(victim):
    silent = [connect_to(victim) for _ in range(100)]
    with TlsAttacker.accepted(victim) as peer:
        peer.drop()
    for sock in silent:
        sock.close()
