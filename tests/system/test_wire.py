# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Wire truth from outside: tshark and a decoder of our own, written from the RFCs, agree on what
unmodified programs sent. Nothing malformed, every octet accounted for, the opcodes that the
programs ask for and no other."""

import iwarp
import pytest
import recording
from raw_peer import RpingPeer
from wiretap import run, wire  # noqa: F401


@pytest.mark.parametrize("size", [64, 60000])
def test_rping(start, wire, port, size):
    seen = run(start, wire, port, f"rping -s -C 5 -V -S {size}",
               f"rping -c -a {{address}} -C 5 -V -S {size}").opcodes()
    assert set(seen) == {iwarp.WRITE, iwarp.READ_REQUEST, iwarp.READ_RESPONSE, iwarp.SEND}
    assert seen[iwarp.READ_REQUEST] == 5
    assert seen[iwarp.SEND] == 20


@pytest.mark.parametrize("line, wanted", [
    ("ib_read_bw -R -F -s 64 -n 50", {iwarp.READ_REQUEST, iwarp.READ_RESPONSE}),
    ("ib_read_bw -R -F -s 65536 -n 20", {iwarp.READ_REQUEST, iwarp.READ_RESPONSE}),
    ("ib_write_bw -R -F -s 1000000 -n 5", {iwarp.WRITE}),
    ("ib_send_bw -R -F -s 65536 -n 20", {iwarp.SEND, iwarp.WRITE}),
])
def test_perftest(start, wire, port, line, wanted):
    """perftest shakes hands by Sends on a connection of its own; ib_send_bw gives credits by
    Writes."""
    seen = run(start, wire, port, line, line + " {address}").opcodes()
    assert wanted <= set(seen) <= wanted | {iwarp.SEND}


def test_many_connections_are_each_well_formed(start, wire, port):
    recorded = run(start, wire, port, "ucmatose -c 10 -C 5 -S 3000",
                   "ucmatose -s {address} -c 10 -C 5 -S 3000")
    assert len(recorded.conversations) == 10
    assert set(recorded.opcodes()) == {iwarp.SEND}


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
def test_wrong_crc_and_our_terminate_are_decoded(start, wire, port):
    """The dissector does find a wrong CRC, and reads our answer to it as we mean it."""
    _, captured = wire
    start.server("rping -s -P", port)
    with RpingPeer.started(port) as peer:
        peer.send_ulpdu(iwarp.tagged(iwarp.WRITE, 1, 0))
        peer.send_ulpdu(iwarp.tagged(iwarp.WRITE, 1, 0, b"x" * 16), crc_flip=1)
        peer.recv_terminate()
    recorded = captured.stop()
    assert recorded.remarks()[0] == {"Good": 2, "Bad": 1}
    text = recording.tshark(recorded.paths[0], "-Y", "iwarp_rdma.opcode == 7", "-T", "fields",
                            *recording.columns(["iwarp_rdma.term_layer",
                                                "iwarp_rdma.term_etype_llp",
                                                "iwarp_rdma.term_errcode_llp"]))
    assert [int(value, 0) for value in text.split()] == [2, 0, 2]
