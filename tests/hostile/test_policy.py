# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A victim that asks for markers, and one that asks for no CRC: what is wrong then. RFC 5044 4.2 to
4.4, 6 and 8."""

import os
import struct

import ground
import iwarp
import pytest
from attacker import Attacker, Victim, read_request, response, send, terminate_of, untagged, write

EVERY = 512


def victim_with(policy, tmp_path):
    with ground.policy(policy) as environment:
        process = Victim(os.environ["ANYWARP_BUILD"], tmp_path, **environment)
        yield process
    assert process.ask("check") == "ok"
    process.wait_honest(process.honest_rounds())
    process.quit()


@pytest.fixture
def marked(tmp_path):
    yield from victim_with("markers=on", tmp_path)


@pytest.fixture
def unchecked(tmp_path):
    yield from victim_with("crc=off", tmp_path)


class Stream:
    """FPDUs with markers, from the first octet of full operation on. RFC 5044 4.3: a marker every
    512 octets, the first before the first FPDU; each tells how far back its FPDU began."""

    def __init__(self):
        self.octets = 0

    def fpdu(self, ulpdu, wrong=lambda number, pointer: pointer, reserved=0, length=None):
        body = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
        body += bytes(-len(body) % 4) + bytes(4)  # the CRC's place
        out, start, number = b"", None, 0
        for at in range(0, len(body), 4):
            if (self.octets + len(out)) % EVERY == 0:
                pointer = 0 if start is None else len(out) - start
                out += struct.pack(">HH", reserved, wrong(number, pointer) & 0xFFFF)
                number += 1
            start = len(out) if start is None else start
            out += body[at:at + 4]
        self.octets += len(out)
        return out[:-4] + struct.pack("<I", iwarp.crc32c(out[:-4]))


def started(victim):
    """A connection in full operation, and our stream on it."""
    peer, stream = Attacker.started(victim), Stream()
    peer.send(stream.fpdu(write(0, 0, b"")))
    return peer, stream


LONG = b"m" * 3000


def test_right_markers(marked):
    region = marked.region(length=4096)
    peer, stream = started(marked)
    for length in [*range(440, 530), 1000, 2000, 3000]:
        marked.expect(region, 0, LONG[:length])
        peer.send(stream.fpdu(write(region.stag, region.address, LONG[:length])))
    peer.send(stream.fpdu(read_request(0, 0, 0)))
    assert peer.recv_ulpdu() == response(0x51, 0x5100)
    assert marked.ask("check") == "ok"
    peer.drop()


@pytest.mark.parametrize("how", [
    {"wrong": lambda number, pointer: pointer | 3}, {"reserved": 0xFFFF}],
    ids=["low bits of the pointer", "reserved octets"])
def test_bits_of_a_marker_that_mean_nothing(marked, how):
    """RFC 5044 4.2: ignored on receipt."""
    region = marked.region(length=4096)
    marked.expect(region, 0, LONG)
    peer, stream = started(marked)
    peer.send(stream.fpdu(write(region.stag, region.address, LONG), **how))
    peer.send(stream.fpdu(read_request(0, 0, 0)))
    assert peer.recv_ulpdu() == response(0x51, 0x5100)
    peer.drop()


WRONG = {
    "four too many": lambda number, pointer: pointer + 4,
    "four too few": lambda number, pointer: pointer - 4,
    "zero": lambda number, pointer: 0,
    "all ones": lambda number, pointer: 0xFFFC,
    "of the FPDU before": lambda number, pointer: pointer + 512,
    "only the last": lambda number, pointer: pointer + (4 if number == 4 else 0),
    "upper half": lambda number, pointer: pointer ^ 0x8000,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_marker(marked, wrong):
    """RFC 5044 8 code 3; nothing is placed of an FPDU with one."""
    region = marked.region(length=4096)
    peer, stream = started(marked)
    peer.send(stream.fpdu(write(region.stag, region.address, LONG), wrong=wrong))
    assert peer.recv_all() == [terminate_of((2, 0, 3))]
    peer.wait_disconnected()
    peer.drop()


def test_marker_before_an_fpdu_is_not_zero(marked):
    """The first marker of a stream stands before the first FPDU: FIN alone, as RFC 5044 7.1.2 wants
    of a responder that got no valid FPDU."""
    peer, stream = Attacker.started(marked), Stream()
    peer.send(stream.fpdu(write(0, 0, b""), wrong=lambda number, pointer: 4))
    assert peer.recv_all() == []
    peer.drop()


def test_no_markers_at_all(marked):
    """What stands where markers are due is taken out, and the CRC does not agree."""
    region = marked.region(length=4096)
    peer, _ = started(marked)
    peer.send(iwarp.fpdu(write(region.stag, region.address, LONG)) * 30)
    assert peer.recv_all() == [terminate_of((2, 0, 2))]
    peer.drop()


@pytest.mark.parametrize("lie", [-4, 4, 512, 60000], ids=lambda lie: f"{lie:+}")
def test_length_that_lies_among_markers(marked, lie):
    region = marked.region(length=4096)
    peer, stream = started(marked)
    ulpdu = write(region.stag, region.address, LONG)
    peer.send(stream.fpdu(ulpdu, length=len(ulpdu) + lie) + bytes(70000))
    assert peer.recv_all() == [terminate_of((2, 0, 2))]
    peer.drop()


UNCHECKED = {
    "length 0": (b"", (1, 0, 0)),
    "short": (send(1)[:9], (1, 0, 0)),
    "stag": (write(0x12345678, 0), (1, 1, 0)),
    "queue": (send(1, qn=7), (1, 2, 1)),
    "opcode": (untagged(13, 0, 1), (0, 2, 6)),
    "no receive": (send(1), (1, 2, 2)),
    "read": (read_request(0x12345678, 0, 1), (0, 1, 0)),
}


@pytest.mark.parametrize("ulpdu, error", UNCHECKED.values(), ids=UNCHECKED.keys())
def test_without_crc_the_rest_is_checked(unchecked, ulpdu, error):
    """RFC 5044 4.4: with CRCs off the field is there and not looked at; all other checks hold."""
    peer = Attacker.started(unchecked, flags=0)
    assert not peer.reply_flags & iwarp.CRC
    peer.send(iwarp.fpdu(write(0, 0, b""), crc_flip=0x1234) + iwarp.fpdu(ulpdu, crc_flip=0x4321))
    wanted = terminate_of(error, ulpdu)
    found = peer.recv_plain(2 + len(wanted) + -(len(wanted) + 2) % 4 + 4)
    assert found[2:2 + len(wanted)] == wanted
    assert peer.recv_end()
    peer.drop()


def test_crc_is_on_when_we_want_it(unchecked):
    """RFC 5044 7.1.1: either end turns it on."""
    peer = Attacker.accepted(unchecked)
    assert peer.reply_flags & iwarp.CRC
    peer.send_ulpdu(write(0, 0, b""), crc_flip=1)
    assert peer.recv_all() == [terminate_of((2, 0, 2))]
    peer.drop()


@pytest.mark.parametrize("junk", [bytes(100), bytes(range(256)) * 300, b"\xFF" * 70000,
                                  b"\x40\x00" * 40000],
                         ids=["zeroes", "all octets", "ones", "lengths"])
def test_without_crc_junk_ends_the_stream(unchecked, junk):
    peer = Attacker.started(unchecked, flags=0)
    peer.send(iwarp.fpdu(write(0, 0, b"")))
    peer.send(junk)
    peer.wait_disconnected()
    peer.drop()
