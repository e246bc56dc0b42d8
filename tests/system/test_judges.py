# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The judges of captures are judged: hand-made connections that are right pass both of them, and
each thing that is wrong is found. Needs no right to capture."""

import conversation
import iwarp
import pytest
import recording
import tcp_order
import tshark_view

PORTS = 40000, 50000
CLIENT_FRAME = {"flags": iwarp.CRC}
SERVER_FRAME = {"key": iwarp.KEY_REPLY, "flags": iwarp.CRC}
MARKED = iwarp.CRC | iwarp.MARKERS
TERMINATE = iwarp.untagged(iwarp.TERMINATE, iwarp.QN_TERMINATE, 1, b"\x11\x00\x00\x00")
SEND_2 = iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, 2, b"two")


def stream(ulpdus, markers_on=False, **wrong):
    octets = b""
    for ulpdu in ulpdus:
        plain = iwarp.fpdu(ulpdu)
        octets += iwarp.marked(plain, len(octets), **wrong) if markers_on else plain
    return octets


def packets(client, server, request=None, reply=None):
    """The octets that each end sends behind its start frame, in segments that mean nothing."""
    starts = [iwarp.start_frame(**{**CLIENT_FRAME, **(request or {})}),
              iwarp.start_frame(**{**SERVER_FRAME, **(reply or {})})]
    yield tcp_order.Packet(*PORTS, tcp_order.SYN, 0, b"")
    yield tcp_order.Packet(*PORTS[::-1], tcp_order.SYN | tcp_order.ACK, 0, b"")
    yield tcp_order.Packet(*PORTS, tcp_order.ACK, 1, starts[0])
    yield tcp_order.Packet(*PORTS[::-1], tcp_order.ACK, 1, starts[1])
    for ports, start, octets in ((PORTS, *starts[:1], client), (PORTS[::-1], *starts[1:], server)):
        for at in range(0, len(octets), 1000):
            yield tcp_order.Packet(*ports, tcp_order.ACK, 1 + len(start) + at,
                                   octets[at:at + 1000])


def good_ulpdus():
    """One of every opcode; two segments of a Send."""
    yield iwarp.tagged(iwarp.WRITE, 7, 64, bytes(1500))
    yield iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, 1, b"a" * 500, last=False)
    yield iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, 1, b"b" * 3, mo=500)
    yield iwarp.read_request(1, (8, 0), 4, (9, 0))
    yield iwarp.tagged(iwarp.READ_RESPONSE, 8, 0, b"four")
    for msn, opcode in ((2, iwarp.SEND_SE), (3, iwarp.SEND_INVALIDATE),
                        (4, iwarp.SEND_SE_INVALIDATE), (5, iwarp.IMMEDIATE),
                        (6, iwarp.IMMEDIATE_SE)):
        yield iwarp.untagged(opcode, iwarp.QN_SEND, msn, bytes(8))
    yield iwarp.untagged(iwarp.ATOMIC_REQUEST, iwarp.QN_READ, 2, bytes(52))
    yield iwarp.untagged(iwarp.ATOMIC_RESPONSE, iwarp.QN_ATOMIC_RESPONSE, 1, bytes(12))
    yield TERMINATE


def problems_of(*octets, **frames):
    return conversation.conversations(packets(*octets, **frames))[0].problems()


@pytest.mark.parametrize("client_asks, server_asks", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_what_is_right_passes(tmp_path, client_asks, server_asks):
    """With markers both ways, one way, not at all."""
    asked = [{"flags": MARKED} if asks else {} for asks in (client_asks, server_asks)]
    both = list(packets(stream(good_ulpdus(), server_asks), stream(good_ulpdus(), client_asks),
                        *asked))
    recorded = recording.Recording(tmp_path / "good", both)
    assert recorded.problems() == []
    assert set(recorded.opcodes()) == set(range(12))
    assert recorded.remarks()[0] == {"Good": 2 * len(list(good_ulpdus()))}


def test_rtr_is_told_from_the_ulps_messages():
    request = {"flags": iwarp.CRC | iwarp.ENHANCED, "revision": 2, "private": b"\xc0\x04\xc0\x04"}
    reply = {**request, "key": iwarp.KEY_REPLY}
    empty = iwarp.read_request(1, (8, 0), 0, (9, 0))
    full = iwarp.read_request(1, (8, 0), 1, (9, 0))
    for first, wanted in ((empty, iwarp.READ_REQUEST), (full, None),
                          (iwarp.tagged(iwarp.WRITE, 1, 0), iwarp.WRITE), (TERMINATE, None)):
        one, = conversation.conversations(packets(stream([first]), b"", request, reply))
        assert one.problems() == [] and one.rtr() == wanted
        assert set(one.opcodes()) == (set() if wanted is not None else {first[1] & 15})


def test_a_connection_that_was_refused_at_first_is_one():
    refused = tcp_order.Packet(*PORTS, tcp_order.SYN, 0, b"")
    one, = conversation.conversations([refused, *packets(stream(good_ulpdus()), b"")])
    assert one.ports == PORTS and one.problems() == []


@pytest.mark.parametrize("fpdu, wanted", [
    (iwarp.fpdu(SEND_2[:-3], crc_flip=1), "wrong CRC"),
    (iwarp.fpdu(SEND_2) + b"\0\0\0", "3 octets at the end"),
    (iwarp.fpdu(SEND_2, length=200), "octets at the end"),
    (stream([iwarp.untagged(iwarp.SEND, iwarp.QN_READ, 1)]), "opcode 3 on queue 1"),
    (stream([iwarp.untagged(15, iwarp.QN_SEND, 1)]), "opcode 15 on queue 0"),
    (stream([iwarp.untagged(iwarp.WRITE, iwarp.QN_SEND, 1)]), "opcode 0 on queue 0"),
    (stream([iwarp.tagged(iwarp.SEND, 1, 0)]), "opcode 3 on queue None"),
    (stream([iwarp.tagged(iwarp.WRITE, 1, 0, ddp_version=2)]), "versions"),
    (stream([iwarp.tagged(iwarp.WRITE, 1, 0, rdmap_version=0)]), "versions"),
    (stream([iwarp.untagged(iwarp.IMMEDIATE, iwarp.QN_SEND, 1, bytes(9))]), "of 9 octets"),
    (stream([iwarp.untagged(iwarp.ATOMIC_REQUEST, iwarp.QN_READ, 1)]), "of 0 octets"),
    (stream([SEND_2]), "MSN 2, MO 0 instead of (1, 0)"),
    (stream([iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, 1, mo=1)]), "MSN 1, MO 1"),
    (stream([iwarp.untagged(iwarp.SEND, iwarp.QN_SEND, 1, b"abcd", last=False), SEND_2]),
     "MSN 2, MO 0 instead of (1, 4)"),
    (stream([TERMINATE, iwarp.tagged(iwarp.WRITE, 1, 0)]), "opcode 0 behind a Terminate"),
    (stream([iwarp.control(iwarp.SEND, False, True) + bytes((0, 0, 0, 9)) + bytes(7) + b"\1"
             + bytes(4)]), "opcode 3 with an STag"),
])
def test_each_wrong_fpdu_is_found(fpdu, wanted):
    """In either direction."""
    for octets in ((fpdu, b""), (b"", fpdu)):
        assert any(wanted in problem for problem in problems_of(*octets))


def test_pad_that_is_not_zero_is_found():
    body = iwarp.fpdu(iwarp.tagged(iwarp.WRITE, 1, 0, b"x"))[:-5] + b"\1"
    fpdu = body + iwarp.crc32c(body).to_bytes(4, "little")
    assert problems_of(fpdu, b"") == ["pad is not zero at 0"]


@pytest.mark.parametrize("octets", [
    stream(good_ulpdus()), stream(good_ulpdus(), True, pointer_shift=4),
    stream(good_ulpdus(), True)[4:], bytes(4) + stream(good_ulpdus(), True)])
def test_wrong_markers_are_found(octets):
    """None, lying ones, one octet group too early, one too late."""
    assert problems_of(octets, b"", reply={"flags": MARKED})
    assert problems_of(b"", octets, request={"flags": MARKED})


def test_markers_that_nobody_asked_for_are_found():
    assert problems_of(stream(good_ulpdus(), True), b"")


@pytest.mark.parametrize("frames, wanted", [
    ({"reply": {"key": iwarp.KEY_REQUEST}}, "keys"),
    ({"request": {"flags": iwarp.CRC | iwarp.REJECT}}, "a Request that rejects"),
    ({"reply": {"revision": 2}}, "revisions 1 and 2"),
    ({"request": {"revision": 3}, "reply": {"revision": 3}}, "revisions 3 and 3"),
    ({"reply": {"flags": iwarp.ENHANCED, "private": bytes(4)}}, "only one frame is enhanced"),
])
def test_wrong_start_frames_are_found(frames, wanted):
    assert any(wanted in problem for problem in problems_of(b"", b"", **frames))


def test_tshark_finds_a_wrong_crc(tmp_path):
    both = packets(stream([SEND_2]) + iwarp.fpdu(SEND_2, crc_flip=1), b"")
    recorded = recording.Recording(tmp_path / "crc", list(both))
    assert recorded.remarks()[0] == {"Good": 1, "Bad": 1}
    assert any(problem.startswith("tshark's CRC verdicts") for problem in recorded.problems())


def test_tshark_finds_a_malformed_frame(tmp_path):
    """A Read Request that ends in its header."""
    short = iwarp.untagged(iwarp.READ_REQUEST, iwarp.QN_READ, 1, bytes(10))
    recorded = recording.Recording(tmp_path / "short", list(packets(stream([short]), b"")))
    assert any(problem.startswith("malformed") for problem in recorded.problems())


def test_what_tshark_sees_differently_is_found(tmp_path):
    """It reads one connection, the second judge is shown another."""
    recorded = recording.Recording(tmp_path / "one", list(packets(stream([SEND_2]), b"")))
    other = packets(stream([SEND_2 + b"more"]), b"", reply={"flags": 0})
    recorded.conversations = conversation.conversations(other)
    found = list(recording.differences(recorded.conversations[0], recorded.frames()))
    assert len(found) == 2 and "segments" in found[0] and "start frames" in found[1]


def test_an_fpdu_that_tshark_misreads_is_left_to_the_second_judge(tmp_path):
    """It has a marker at 512 and ends at 1024, and nothing else is wrong with it."""
    ulpdus = [iwarp.tagged(iwarp.WRITE, 1, 0, bytes(size)) for size in (10, 964, 100)]
    both = list(packets(stream(ulpdus, True), b"", reply={"flags": MARKED}))
    recorded = recording.Recording(tmp_path / "misread", both)
    ends = [(fpdu.end, tshark_view.is_misread(fpdu))
            for fpdu in recorded.conversations[0].initiator.fpdus]
    assert ends == [(36, False), (1024, True), (1148, False)]
    assert recorded.problems() == []
