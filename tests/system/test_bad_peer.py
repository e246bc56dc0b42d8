# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Peers made by hand that break the rules, against Debian's rping as server and as client: on our libraries, or over the
kernel module (kernel.wire). Each time the right Terminate or a clear error comes back, and nobody else is hurt: a
connection that the same process held before goes on, and a new one works. RFC 5040 4.8, RFC 5041 7, RFC 5044 8."""

import socket

import ground
import iwarp
import pytest
from iwarp import Terminate
from raw_peer import SECONDS_MAX, PeerClosed, RawPeer, RpingPeer

SERVER = f"rping -s -P -a {ground.ADDRESS}"
SILENT_PEERS = 100


@pytest.fixture
def server(start, port):
    """rping's server with a good connection that must work before the test and after it."""
    started = start.server(SERVER, port)
    with RpingPeer.started(port, ground.ADDRESS) as good:
        good.ping()
        yield started
        good.ping()
        with RpingPeer.started(port, ground.ADDRESS) as another:
            another.ping()
    assert started.status() is None


def test_peer_by_hand_is_served(start, port):
    """The yardstick for everything below: a peer that obeys the RFCs works."""
    start.server(SERVER, port)
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        for number in range(10):
            peer.ping(b"ping %d" % number)


def test_markers_are_sent_to_who_asks(start, port):
    start.server(SERVER, port)
    with RpingPeer.started(port, ground.ADDRESS, flags=iwarp.CRC | iwarp.MARKERS) as peer:
        for number in range(10):
            peer.ping(b"ping %d" % number)


def test_reply_to_a_plain_request_is_plain(server, port):
    with RawPeer.connect(ground.ADDRESS, port) as peer:
        reply = peer.start(revision=1)
        assert (reply.key, reply.revision) == (iwarp.KEY_REPLY, 1)
        assert not reply.flags & (iwarp.REJECT | iwarp.ENHANCED)


START_UPS = {
    "wrong key": iwarp.start_frame(key=b"MPA ID Req Fram!"),
    "a Reply for a Request": iwarp.start_frame(key=iwarp.KEY_REPLY),
    "another protocol": b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n",
    "revision 3": iwarp.start_frame(revision=3),
    "private data too long": iwarp.start_frame(private=bytes(513)),
    "private data endless": iwarp.start_frame(private=bytes(2000), private_length=0xFFFF),
    "enhanced without its words": iwarp.start_frame(revision=2, flags=iwarp.CRC | iwarp.ENHANCED),
}


@pytest.mark.parametrize("octets", START_UPS.values(), ids=START_UPS.keys())
def test_wrong_start_up_is_closed(server, port, octets):
    with RawPeer.connect(ground.ADDRESS, port) as peer:
        peer.send(octets)
        assert peer.recv_end()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 19, 25])
@pytest.mark.parametrize("end", ["fin", "rst"])
def test_truncated_start_up(server, port, count, end):
    with RawPeer.connect(ground.ADDRESS, port) as peer:
        peer.send(iwarp.start_frame(private=bytes(10))[:count])
        if end == "rst":
            peer.reset()
            return
        peer.sock.shutdown(socket.SHUT_WR)
        assert peer.recv_end()


def test_start_up_octet_by_octet(server, port):
    with RpingPeer.connect(ground.ADDRESS, port) as peer:
        for octet in iwarp.start_frame():
            peer.send(bytes([octet]))
        assert peer.recv_start_frame().key == iwarp.KEY_REPLY
        peer.ping()


def test_silent_peers_do_not_keep_others_out(server, port):
    """They stay open, silent, while the fixture's next connection is made."""
    silent = [RawPeer.connect(ground.ADDRESS, port) for _ in range(SILENT_PEERS)]
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.ping()
    for peer in silent:
        peer.sock.close()


def test_silent_peer_is_closed_in_the_end(server, port):
    with RawPeer.connect(ground.ADDRESS, port) as peer:
        assert peer.recv_end()


def send(msn, payload=b"x" * 16, **header):
    return iwarp.untagged(iwarp.SEND, header.pop("qn", 0), msn, payload, **header)


# What is sent in place of the first message, and the Terminate that RFC 5040 4.8 names for it;
# None where more than one describes it.
VIOLATIONS = {
    "CRC": (iwarp.fpdu(send(1), crc_flip=1), Terminate(2, 0, 2)),
    "Write to an invalid STag":
        (iwarp.fpdu(iwarp.tagged(iwarp.WRITE, 0xBAD, 0, b"x")), Terminate(1, 1, 0)),
    "Write with a TO that wraps":
        (iwarp.fpdu(iwarp.tagged(iwarp.WRITE, 0xBAD, 2**64 - 1, b"xyz")), None),
    "tagged DDP version":
        (iwarp.fpdu(iwarp.tagged(iwarp.WRITE, 1, 0, b"x", ddp_version=2)), Terminate(1, 1, 4)),
    "queue number": (iwarp.fpdu(send(1, qn=5)), Terminate(1, 2, 1)),
    "MSN": (iwarp.fpdu(send(7)), Terminate(1, 2, 3)),
    "MO": (iwarp.fpdu(send(1, mo=4)), Terminate(1, 2, 4)),
    "Send too long": (iwarp.fpdu(send(1, b"x" * 500)), Terminate(1, 2, 5)),
    "untagged DDP version": (iwarp.fpdu(send(1, ddp_version=2)), Terminate(1, 2, 6)),
    "RDMAP version": (iwarp.fpdu(send(1, rdmap_version=2)), Terminate(0, 2, 5)),
    "opcode": (iwarp.fpdu(iwarp.untagged(15, 0, 1)), Terminate(0, 2, 6)),
    "Read Request for an invalid STag":
        (iwarp.fpdu(iwarp.read_request(1, (1, 0), 16, (0xBAD, 0))), Terminate(0, 1, 0)),
    "Read Response that nobody asked for":
        (iwarp.fpdu(iwarp.tagged(iwarp.READ_RESPONSE, 0xBAD, 0, b"x")), None),
}


@pytest.mark.parametrize("octets, wanted", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_violation_ends_in_its_terminate(server, port, octets, wanted):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.send_ulpdu(iwarp.tagged(iwarp.WRITE, 1, 0))
        peer.send(octets)
        found = peer.recv_terminate()
        assert wanted is None or found == wanted
        assert peer.recv_end()


def test_responder_sends_nothing_before_a_valid_fpdu(server, port):
    """Not even a Terminate: RFC 5044 7.1.2."""
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.send_ulpdu(send(1), crc_flip=1)
        assert peer.recv_end()


@pytest.mark.parametrize("stag_change, length, wanted", [
    (1, RpingPeer.SIZE, Terminate(1, 1, 0)), (0, RpingPeer.SIZE + 1, Terminate(1, 1, 1))],
    ids=["other STag", "one octet too many"])
def test_read_response_stays_in_what_was_asked(server, port, stag_change, length, wanted):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        stag, offset = peer.recv_read_request()
        peer.send_ulpdu(iwarp.tagged(iwarp.READ_RESPONSE, stag ^ stag_change, offset,
                                     b"x" * length))
        assert peer.recv_terminate() == wanted


def test_read_response_too_long_in_its_second_segment(server, port):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        stag, offset = peer.recv_read_request()
        half = b"x" * (RpingPeer.SIZE // 2)
        peer.send_ulpdu(iwarp.tagged(iwarp.READ_RESPONSE, stag, offset, half, last=False))
        peer.send_ulpdu(iwarp.tagged(iwarp.READ_RESPONSE, stag, offset + len(half), half + b"!"))
        assert peer.recv_terminate() == Terminate(1, 1, 1)


def test_terminate_from_the_peer_ends_only_its_connection(server, port):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.recv_read_request()
        peer.send_ulpdu(iwarp.untagged(iwarp.TERMINATE, iwarp.QN_TERMINATE, 1,
                                       bytes.fromhex("01000000")))
        assert peer.recv_end()


@pytest.mark.parametrize("octets", [b"\xff\xff", b"\xff\xff" + bytes(5000), b"\x00", b""],
                         ids=["longest length", "longest with some", "half a length", "nothing"])
@pytest.mark.parametrize("end", ["fin", "rst"])
def test_connection_lost_inside_an_fpdu(server, port, octets, end):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.send(octets)
        if end == "rst":
            peer.reset()
            return
        peer.sock.shutdown(socket.SHUT_WR)
        while True:
            try:
                peer.recv_segment()
            except PeerClosed:
                break


def test_reset_while_the_server_reads(server, port):
    with RpingPeer.started(port, ground.ADDRESS) as peer:
        peer.recv_read_request()
        peer.reset()


def test_peer_that_does_not_answer_a_read_hurts_nobody(server, port):
    with RpingPeer.started(port, ground.ADDRESS) as stuck:
        stuck.recv_read_request()
        with RpingPeer.started(port, ground.ADDRESS) as peer:
            peer.ping()


# ---- rping as client, a server made by hand ----


@pytest.fixture
def by_hand(start, port):
    """(rping's client, the connection it made to us, its Request)."""
    listener = socket.create_server((ground.ADDRESS, port))
    listener.settimeout(SECONDS_MAX)
    client = start(f"rping -c -a {ground.ADDRESS} -p {port} -C 3 -v -V")
    sock, _ = listener.accept()
    with listener, RawPeer(sock) as peer:
        yield client, peer, peer.recv_start_frame()


def test_request_is_what_rfc_5044_wants(by_hand):
    _, _, request = by_hand
    assert request.key == iwarp.KEY_REQUEST
    assert request.revision in (1, 2)
    assert request.flags & iwarp.CRC
    assert not request.flags & (iwarp.MARKERS | iwarp.REJECT)


REPLIES = {
    "wrong key": iwarp.start_frame(key=b"MPA ID Rep Fram!"),
    "a Request for a Reply": iwarp.start_frame(),
    "rejected": iwarp.start_frame(key=iwarp.KEY_REPLY, flags=iwarp.CRC | iwarp.REJECT),
    "revision 3": iwarp.start_frame(key=iwarp.KEY_REPLY, revision=3),
    "private data too long": iwarp.start_frame(key=iwarp.KEY_REPLY, private=bytes(513)),
    "half a Reply": iwarp.start_frame(key=iwarp.KEY_REPLY)[:10],
    "nothing": b"",
}


@pytest.mark.parametrize("octets", REPLIES.values(), ids=REPLIES.keys())
def test_wrong_reply_is_an_error_of_connect(by_hand, octets):
    client, peer, _ = by_hand
    peer.send(octets)
    try:
        peer.sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the client has closed already
    assert client.wait_exit(SECONDS_MAX) > 0
    assert "RDMA_CM_EVENT_" in client.output()


def test_reset_instead_of_a_reply(by_hand):
    client, peer, _ = by_hand
    peer.reset()
    assert client.wait_exit(SECONDS_MAX) > 0
    assert "RDMA_CM_EVENT_" in client.output()


def test_close_without_a_reply_is_asked_again(start, port):
    """Another program may listen the next moment; only after that the server may be one that knows revision 1 alone."""
    revisions = []
    with socket.create_server((ground.ADDRESS, port)) as listener:
        listener.settimeout(SECONDS_MAX)
        client = start(f"rping -c -a {ground.ADDRESS} -p {port} -C 3 -v -V")
        for _ in range(3):
            sock, _ = listener.accept()
            with RawPeer(sock) as peer:
                revisions.append(peer.recv_start_frame().revision)
    assert client.wait_exit(SECONDS_MAX) > 0
    assert revisions == [2, 2, 1]


def test_server_that_never_replies_is_given_up(by_hand):
    client, _, _ = by_hand
    assert client.wait_exit(SECONDS_MAX) > 0
    assert "RDMA_CM_EVENT_UNREACHABLE" in client.output()


def test_bad_crc_ends_the_client_and_the_server_hears_why(by_hand):
    client, peer, request = by_hand
    # A is 0: no ready-to-receive message, so that the client's own is the first.
    peer.send(iwarp.start_frame(key=iwarp.KEY_REPLY, flags=iwarp.CRC | iwarp.ENHANCED, revision=2,
                                private=bytes([0, 1, 0, 1])))
    assert peer.recv_segment().opcode == iwarp.SEND
    peer.send_ulpdu(send(1), crc_flip=0x80000000)
    assert peer.recv_terminate() == Terminate(2, 0, 2)
    client.wait_exit(SECONDS_MAX)
    assert "ping data" not in client.output()
