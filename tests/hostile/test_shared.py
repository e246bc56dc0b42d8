# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What streams share, what is taken back while a peer uses it, and connections that end anywhere.
RFC 5042 6.1.1, 6.2.2, 6.3.3, 6.4.3 and 6.4.6."""

import os
import random
import socket
import struct
import threading

import iwarp
import pytest
from attacker import (ALL_RIGHTS, ASYNC_CQ_ERR, ASYNC_LAST_WQE, ASYNC_QP_FATAL, ASYNC_SRQ_LIMIT,
                      FLUSH, LOCAL_WRITE, REM_ACCESS, REM_OP, SUCCESS, WR_READ, WR_SEND, WR_WRITE,
                      Attacker, read_request, response, send, terminate_of, untagged, write)

SANITIZED = bool(os.environ.get("ANYWARP_SAN"))
GUESSES = 300 if SANITIZED else 2500
REVOCATIONS = 5 if SANITIZED else 20
SECRET = b"\x5E" * 16  # what the victim writes to a region when it took it back


def test_stags_cannot_be_guessed(victim):
    """Thousands of guesses, half of them near an STag that is known: each costs a connection."""
    region = victim.region()
    known = {region.stag} | {victim.region().stag for _ in range(30)}
    for number in range(GUESSES):
        guess = random.getrandbits(32)
        if number % 2:
            guess = region.stag ^ 1 << random.randrange(32) ^ random.getrandbits(6)
        if guess in known:
            continue
        attack = write(guess, region.address, b"guess")
        peer = Attacker.accepted(victim)
        peer.send_ulpdu(attack)
        assert peer.recv_all() == [terminate_of((1, 1, 0), attack)]
        peer.drop()


def test_stags_tell_nothing_of_each_other(victim):
    """RFC 5042 6.1.1: hard to predict, and reused as late as possible."""
    region = victim.region()
    stags = [region.stag]
    for _ in range(500):
        victim.ask("dereg", region.number)
        stags.append(victim.numbers("register", region.number, 0, ALL_RIGHTS)[1])
    assert len(set(stags)) == len(stags)
    steps = [(b - a) % 2**32 for a, b in zip(stags, stags[1:])]
    assert len(set(steps)) > 490
    near = [step for step in steps if min(step, 2**32 - step) < 2**16]
    assert len(near) < 5


def writer(sock, octets, stop):
    """Sends octets again and again until the victim has had enough."""
    try:
        while not stop.is_set():
            sock.sendall(octets)
    except OSError:
        pass


@pytest.mark.parametrize("turn", range(REVOCATIONS))
def test_region_is_revoked_under_a_flood_of_writes(victim, turn):
    """RFC 5042 6.2.2: when deregistering has returned, nothing changes the memory any more."""
    region = victim.region(length=1 << 18)
    octets = b"".join(iwarp.fpdu(write(region.stag, region.address + i * 4096, b"w" * 4096))
                      for i in range(64))
    peer, stop = Attacker.accepted(victim), threading.Event()
    thread = threading.Thread(target=writer, args=(peer.sock, octets, stop))
    thread.start()
    while victim.dump(region, turn * 1000, 1) != b"w":
        pass
    assert victim.ask("revoke", region.number) == "ok"
    assert victim.ask("check") == "ok"
    try:
        last = [ulpdu for ulpdu in iter(peer.recv_ulpdu, None)]
    except ConnectionError:
        last = []  # our own octets, still coming, may have had the Terminate thrown away
    stop.set()
    thread.join()
    for ulpdu in last:
        assert ulpdu[:2] == b"\x41\x47" and ulpdu[18:21] == b"\x11\x00\xC0"
        assert struct.unpack(">I", ulpdu[26:30])[0] == region.stag
    peer.wait_disconnected()
    peer.drop()


@pytest.mark.parametrize("turn", range(REVOCATIONS))
def test_qp_is_destroyed_under_a_flood_of_writes(victim, turn):
    """The program need not wait for a peer to behave before it gives up what the peer uses."""
    region = victim.region(length=1 << 16)
    octets = b"".join(iwarp.fpdu(write(region.stag, region.address, b"w" * (1 << i % 13)))
                      for i in range(100))
    peer, stop = Attacker.accepted(victim), threading.Event()
    thread = threading.Thread(target=writer, args=(peer.sock, octets, stop))
    thread.start()
    while victim.dump(region, (turn * 200) % 4096, 1) != b"w":
        pass
    assert peer.ask_victim("drop") == "ok"
    assert victim.ask("revoke", region.number) == "ok"
    stop.set()
    thread.join()
    peer.sock.close()


@pytest.mark.parametrize("turn", range(0, REVOCATIONS, 2))
def test_region_is_revoked_under_a_read(victim, turn):
    """RFC 5042 6.3.3: nothing that is written there later goes out. RFC 5040 4.8: the Terminate
    carries the Read Request as far as it got."""
    region = victim.region(length=8 << 20)
    first = victim.dump(region, 0, 4096)
    peer = Attacker.accepted(victim)
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # little to check here
    sink = (0x5155, 0x510000)
    peer.send_ulpdu(read_request(region.stag, region.address, region.length, sink=sink))
    got, segments = 0, 0
    while segments <= turn:
        ulpdu = peer.recv_ulpdu()
        assert (got > 0) or ulpdu[14:].startswith(first[:len(ulpdu) - 14])
        got, segments = got + len(ulpdu) - 14, segments + 1
    assert victim.ask("revoke", region.number) == "ok"
    for ulpdu in peer.recv_all():
        if ulpdu[1] & 0xF == iwarp.READ_RESPONSE:
            assert ulpdu[:14] == response(sink[0], sink[1] + got, last=False)
            assert SECRET not in ulpdu[14:]
            got += len(ulpdu) - 14
        else:
            rest = read_request(region.stag, region.address + got, region.length - got,
                                sink=(sink[0], sink[1] + got))
            assert ulpdu == terminate_of((0, 1, 0), rest)
    assert got < region.length
    peer.drop()


def test_srq_is_drained_by_one_peer(victim):
    """RFC 5042 6.4.3.1: who takes all that is shared is cut off, the program was warned, and a
    stream that asks for nothing meanwhile keeps its connection."""
    inbox = victim.region(access=LOCAL_WRITE, length=64 * 64)
    greedy, modest = Attacker.accepted(victim, srq=1), Attacker.accepted(victim, srq=1)
    for number in range(32):
        victim.ask("srq_recv", number, inbox.number, number * 64, 64)
    victim.ask("srq_limit", 8)
    for number in range(32):
        greedy.send_ulpdu(send(number + 1, b"mine"))
        victim.expect(inbox, number * 64, b"mine")
    assert greedy.completions(32) == [f"{number}:{SUCCESS}" for number in range(32)]
    victim.ask("async", ASYNC_SRQ_LIMIT, 0)
    greedy.send_ulpdu(send(33, b"more"))
    assert greedy.recv_all() == [terminate_of((1, 2, 2), send(33, b"more"))]
    victim.ask("async", ASYNC_LAST_WQE, greedy.qpn)
    victim.ask("srq_recv", 77, inbox.number, 0, 64)
    victim.expect(inbox, 0, b"still here")
    modest.send_ulpdu(send(1, b"still here"))
    assert modest.completions(1) == [f"77:{SUCCESS}"]
    greedy.drop()
    modest.drop()


def test_half_a_send_keeps_one_receive_of_the_srq(victim):
    """RFC 5042 6.4.3.1, buffers in process: a stream holds one at most, and gives it back."""
    inbox = victim.region(access=LOCAL_WRITE, length=64 * 8)
    peers = [Attacker.accepted(victim, srq=1) for _ in range(4)]
    for number in range(5):
        victim.ask("srq_recv", number, inbox.number, number * 64, 64)
    for number, peer in enumerate(peers):
        victim.expect(inbox, number * 64, b"half")
        peer.send_ulpdu(send(1, b"half", last=False))
        peer.send_ulpdu(read_request(0, 0, 0))
        assert peer.recv_ulpdu() == response(0x51, 0x5100)
    other = Attacker.accepted(victim, srq=1)
    victim.expect(inbox, 4 * 64, b"whole")
    other.send_ulpdu(send(1, b"whole"))
    assert other.completions(1) == [f"4:{SUCCESS}"]
    for number, peer in enumerate(peers):
        peer.sock.close()
        assert peer.completions(1) == [f"{number}:{FLUSH}"]
        peer.drop()
    other.drop()


def test_cq_overflows(victim):
    """RFC 5042 6.4.6: it hurts the streams of that CQ alone. Theirs are told by a Terminate."""
    inbox = victim.region(access=LOCAL_WRITE, length=64 * 32)
    peer = Attacker.accepted(victim, cqes=4)
    for number in range(30):
        peer.ask_victim("recv", number, inbox.number, number * 64, 64)
        victim.expect(inbox, number * 64, b"flood")
    peer.send(b"".join(iwarp.fpdu(send(number + 1, b"flood")) for number in range(30)))
    assert peer.recv_all() == [terminate_of((0, 0, 0))]
    victim.ask("async", ASYNC_CQ_ERR, 0)
    peer.wait_disconnected()
    peer.drop()


@pytest.mark.parametrize("error, status", [
    ((1, 1, 0), REM_ACCESS), ((1, 1, 1), REM_ACCESS), ((0, 1, 2), REM_ACCESS),
    ((1, 1, 3), REM_ACCESS), ((1, 2, 2), REM_OP), ((0, 2, 6), REM_OP), ((1, 2, 3), REM_OP)])
def test_terminate_names_a_wr(victim, error, status):
    """The WR that the peer names has its own status; what was behind it is flushed, in order."""
    region = victim.region(access=LOCAL_WRITE)
    peer = Attacker.accepted(victim)
    for number in range(3):
        peer.ask_victim("send", number, WR_READ, region.number, 0, 64, 0x77, 0x7700)
    requests = [peer.recv_ulpdu() for _ in range(3)]
    peer.send_ulpdu(terminate_of(error, requests[1]))
    assert peer.completions(3) == [f"0:{FLUSH}", f"1:{status}", f"2:{FLUSH}"]
    victim.ask("async", ASYNC_QP_FATAL, peer.qpn)
    peer.wait_disconnected()
    assert peer.recv_all() == []
    peer.drop()


def exchange(region, inbox_octets):
    """A stream of whole FPDUs that the victim takes: a Write, a Send in two, a Read Request."""
    return [iwarp.fpdu(ulpdu) for ulpdu in (
        write(region.stag, region.address, b"written"),
        send(1, inbox_octets[:5], last=False), send(1, inbox_octets[5:], mo=5),
        read_request(region.stag, region.address + 64, 33))]


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_connection_ends_anywhere(victim, end):
    """At every octet of an exchange. RFC 5044 8 code 1: inside an FPDU it is lost, and nothing of
    the rest is placed; nobody is answered, but Reads asked for before a FIN are."""
    region = victim.region()
    inbox = victim.region(access=LOCAL_WRITE)
    fpdus = exchange(region, b"in two parts")
    octets = b"".join(fpdus)
    for cut in range(0, len(octets) + 1, 5 if SANITIZED else 1):
        whole = sum(len(b"".join(fpdus[:i + 1])) <= cut for i in range(len(fpdus)))
        peer = Attacker.accepted(victim)
        peer.ask_victim("recv", 1, inbox.number, 0, 64)
        for number, (where, placed) in enumerate([(region, (0, b"written")), (inbox, (0, b"in tw")),
                                                  (inbox, (5, b"o parts"))]):
            if number < whole:
                victim.expect(where, *placed)
        peer.send(octets[:cut])
        if end == "rst":
            # What has arrived may be lost with the connection: wait for it.
            if whole:
                victim.wait_until(lambda: victim.ask("check") == "ok", "the Write")
            peer.reset()
        else:
            peer.sock.shutdown(socket.SHUT_WR)
            found = peer.recv_all()
            assert len(found) == (1 if whole == 4 else 0)
        peer.wait_disconnected()
        done = SUCCESS if whole >= 3 else FLUSH
        if end == "fin" or whole < 3:
            assert peer.completions(1) == [f"1:{done}"]
        peer.drop()


def test_urgent_octets_of_tcp(victim):
    """They are no part of the stream: the FPDUs around them arrive."""
    region = victim.region()
    peer = Attacker.accepted(victim)
    fpdu = iwarp.fpdu(write(region.stag, region.address, victim.dump(region, 0, 100)))
    for cut in range(0, len(fpdu), 3):
        peer.send(fpdu[:cut])
        peer.sock.send(b"!", socket.MSG_OOB)
        peer.send(fpdu[cut:])
        peer.send_ulpdu(read_request(0, 0, 0, cut // 3 + 1))
        assert peer.recv_ulpdu() == response(0x51, 0x5100)
    peer.drop()


@pytest.mark.parametrize("opcode", [WR_WRITE, WR_SEND, WR_READ])
@pytest.mark.parametrize("end", ["fin", "rst", "terminate", "garbage"])
def test_connection_ends_under_the_victims_own_work(victim, opcode, end):
    """Each WR completes exactly once, in order, and nothing good comes behind something bad."""
    region = victim.region(access=LOCAL_WRITE, length=4 << 20)
    peer = Attacker.accepted(victim)
    for number in range(16):
        peer.ask_victim("send", number, opcode, region.number, 0, region.length, 0x77, 0)
    peer.sock.recv(100000)
    if end == "fin":
        peer.sock.shutdown(socket.SHUT_WR)
        peer.sock.recv(100000)
        peer.sock.close()
    elif end == "rst":
        peer.reset()
    elif end == "terminate":
        peer.send_ulpdu(untagged(iwarp.TERMINATE, 2, 1, bytes([0x12, 2, 0, 0])))
    else:
        peer.send(bytes(200))
    peer.wait_disconnected()
    found = [text.split(":") for text in peer.completions(16)]
    assert [int(number) for number, _ in found] == list(range(16))
    good = [status == str(SUCCESS) for _, status in found]
    assert good == sorted(good, reverse=True)
    peer.drop()
