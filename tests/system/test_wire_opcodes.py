# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Wire truth from outside for every opcode, MPA policy and RTR kind, which our own program sends.
Its two judges are those of test_wire.py."""

import iwarp
import pytest
import recording
from wiretap import run, wire  # noqa: F401

import conftest

OPCODES = conftest.BUILD / "tests" / "opcodes"
BASE_STEPS = "write,read,send,send-se,bind,invalidate,bind,invalidate-se"
# Those of RFC 7306 and the Atomic Write, which both ends must agree to.
MORE_STEPS = "write-imm,write-imm-se,send-imm,send-imm-se,atomic,atomic-write"
BASE_OPCODES, ALL_OPCODES = set(range(8)), set(range(12))
# No marker in an FPDU, one, several; and several FPDUs in a message.
SIZES = "1,500,4000,70000"
# A large FPDU fills whole segments of TCP, here with time stamps at an MTU of 1500; a length and a CRC are around the ULPDU.
LARGE_ULPDU = 64776 // 1448 * 1448 - 2 - 4
# Flags that neither RFC 5044 nor RFC 6581 gives a meaning, and those of docs/extensions.md.
FREE_FLAGS, OFFERED, AGREED, LARGE, LARGE_ALONE = 0x0F, 0x06, 0x04, 0x08, 0x09


def exchange(start, wire, port, policies=("", ""), steps=BASE_STEPS, sizes="1,500,1500",
             violator="client"):
    """Our two programs send each other all of these kinds, in the end what earns a Terminate."""
    line = f"{OPCODES} -S {sizes} -o {steps} -e {violator}-violates"
    recorded = run(start, wire, port, line, f"{line} -a {{address}}", policies)
    only, = recorded.conversations
    terminates = [end.opcodes().count(iwarp.TERMINATE) for end in only.directions]
    assert terminates == ([0, 1] if violator == "client" else [1, 0])
    return only


def flags(one):
    """Of the Request and of the Reply."""
    return one.initiator.start.flags, one.responder.start.flags


def test_every_opcode(start, wire, port):
    one = exchange(start, wire, port, steps=f"{BASE_STEPS},{MORE_STEPS}", sizes=SIZES)
    assert set(one.opcodes()) == ALL_OPCODES


@pytest.mark.parametrize("wire", ["lo", "mtu1500"], indirect=True)
@pytest.mark.parametrize("server, client", [("on", "on"), ("on", "off"), ("off", "on")])
def test_every_opcode_with_markers(start, wire, port, server, client):
    """The directions are independent: who asks for markers gets them."""
    one = exchange(start, wire, port, (f"markers={server}", f"markers={client}"),
                   f"{BASE_STEPS},{MORE_STEPS}", SIZES)
    assert set(one.opcodes()) == ALL_OPCODES
    for end, asked in ((one.initiator, server), (one.responder, client)):
        assert end.is_marked == (asked == "on")
        assert (end.stream[:4] == bytes(4)) == end.is_marked
        assert any(fpdu.markers for fpdu in end.fpdus) == end.is_marked


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("markers", ["on", "off"])
def test_a_terminate_of_the_initiator_is_its_last_word(start, wire, port, markers):
    """Those of the responder end all other exchanges here."""
    policy = f"markers={markers}"
    one = exchange(start, wire, port, (policy, policy), violator="server")
    assert one.initiator.opcodes()[-1] == iwarp.TERMINATE


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
def test_tshark_reads_atomics_as_we_mean_them(start, wire, port):
    """Of Debian 12's tshark: it knows atomics, but has no name for the immediates of RFC 7306."""
    _, captured = wire
    exchange(start, wire, port, steps="atomic", sizes="8")
    fields = ["tcp.srcport", "iwarp_rdma.atomic.opcode", "iwarp_rdma.atomic.request_identifier",
              "iwarp_rdma.atomic.original_request_identifier"]
    text = recording.tshark(f"{captured.path}-view0", "-Y", "iwarp_rdma.opcode >= 10", "-T",
                            "fields", *recording.columns(fields))
    rows = [[column.split(",") for column in line.split("\t")] for line in text.splitlines()]
    one, other = ([sum((row[column] for row in rows if row[0][0] == source and row[column][0]), [])
                   for column in (1, 2, 3)] for source in {row[0][0] for row in rows})
    assert [int(opcode, 0) for opcode in one[0] + other[0]] == [0, 2, 0, 2]
    assert (one[1], other[1]) == (other[2], one[2])


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("markers", ["on", "off"])
@pytest.mark.parametrize("server, client", [("off", "off"), ("on", "off"), ("off", "on")])
def test_crc(start, wire, port, server, client, markers):
    """Off only where both ends want it off. RFC 5044 7.1."""
    one = exchange(start, wire, port, [f"crc={crc},markers={markers}" for crc in (server, client)])
    request, reply = flags(one)
    assert bool(request & iwarp.CRC) == (client == "on")
    assert one.crc_on == bool(reply & iwarp.CRC) == ("on" in (server, client))


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("server, client", [(1, 1), (2, 1)])
def test_revision_1(start, wire, port, server, client):
    one = exchange(start, wire, port, (f"revision={server}", f"revision={client}"))
    assert one.initiator.start.revision == 1
    assert not any(each & iwarp.ENHANCED for each in flags(one))
    assert one.rtr() is None


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("server, client, kind", [
    ("send", "send", iwarp.SEND), ("write", "write", iwarp.WRITE),
    ("read", "read", iwarp.READ_REQUEST), ("send+write+read", "read", iwarp.READ_REQUEST),
    ("send", "send+write+read", iwarp.SEND)])
@pytest.mark.parametrize("markers", ["on", "off"])
def test_rtr(start, wire, port, server, client, kind, markers):
    """RFC 6581 9.2: the initiator starts with a kind that both ends know."""
    one = exchange(start, wire, port,
                   [f"markers={markers},p2p=on,rtr={rtr}" for rtr in (server, client)])
    assert one.initiator.start.revision == 2
    assert one.rtr() == kind
    assert len(one.initiator.rtr_kinds()) == len(client.split("+"))


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
def test_without_p2p_nothing_starts_the_connection(start, wire, port):
    one = exchange(start, wire, port, ("p2p=off", "p2p=off"))
    assert one.rtr() is None
    assert not one.initiator.is_peer_to_peer()


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("server, client", [("on", "on"), ("on", "off"), ("off", "on"),
                                            ("off", "off")])
def test_private_extension_flags(start, wire, port, server, client):
    """Where it is off, no octet of it is on the wire."""
    both = (server, client) == ("on", "on")
    one = exchange(start, wire, port, [f"extensions={end},large_fpdus=off" for end in (server, client)],
                   f"{BASE_STEPS},{MORE_STEPS}" if both else BASE_STEPS)
    assert set(one.opcodes()) == (ALL_OPCODES if both else BASE_OPCODES)
    request, reply = flags(one)
    assert request & FREE_FLAGS == (OFFERED if client == "on" else 0)
    assert reply & FREE_FLAGS == (AGREED if both else 0)


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
@pytest.mark.parametrize("server, client, extensions", [("on", "on", "on"), ("off", "any", "on"), ("on", "on", "off"),
                                                        ("on", "off", "off"), ("off", "on", "off")])
def test_flags_of_large_fpdus(start, wire, port, server, client, extensions):
    both = (server, client) == ("on", "on")
    one = exchange(start, wire, port, [f"extensions={extensions},large_fpdus={end}" for end in (server, client)])
    request, reply = flags(one)
    extended = extensions == "on"
    assert request & FREE_FLAGS == (0 if client == "off" else LARGE) | (OFFERED if extended else 0)
    assert reply & FREE_FLAGS == ((LARGE | AGREED if extended else LARGE_ALONE) if both else AGREED if extended else 0)


@pytest.mark.parametrize("wire", ["mtu1500"], indirect=True)
@pytest.mark.parametrize("server, client, sends_large", [("on", "on", (True, True)), ("on", "off", (False, False)),
                                                         ("on", "any", (True, True)), ("off", "any", (True, False))])
def test_large_fpdus_where_they_are_agreed(start, wire, port, server, client, sends_large):
    """Of the client and the server: each FPDU of the others fits into a segment."""
    one = exchange(start, wire, port, [f"large_fpdus={end}" for end in (server, client)], sizes="4000,70000")
    for end, is_large in zip((one.initiator, one.responder), sends_large):
        longest = max(len(fpdu.ulpdu) for fpdu in end.fpdus)
        assert longest == LARGE_ULPDU if is_large else longest < 1460
