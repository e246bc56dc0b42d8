# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Wire truth from outside: tshark decodes what the programs sent. Nothing malformed, every CRC
good, every octet accounted for, the opcodes that the programs ask for and no other."""

import contextlib

import beds
import capture
import iwarp
import pytest
from raw_peer import RpingPeer


@pytest.fixture(params=["lo", "mtu1500", "mtu9000"])
def wire(request, tmp_path, port):
    """(Bed, Capture) on loopback and on a veth where each frame is as a wire would carry it."""
    try:
        with contextlib.ExitStack() as stack:
            bed, interface = beds.LOOPBACK, "lo"
            if request.param != "lo":
                bed = stack.enter_context(beds.VethBed(int(request.param[3:]), one_segment=True))
                interface = "veth0"
            yield bed, stack.enter_context(capture.Capture(tmp_path / "wire", interface,
                                                           bed.address, port, bed.client_prefix))
    except (beds.NotAllowed, capture.NotAllowed) as error:
        pytest.skip(str(error))


def run(start, wire, port, server_line, client_line):
    """The frames that the two programs exchange."""
    bed, captured = wire
    server = start.server(server_line, port, prefix=bed.server_prefix)
    client = start(f"{client_line.format(address=bed.address)} -p {port}",
                   prefix=bed.client_prefix)
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0
    captured.stop()
    return assert_well_formed(captured)


def assert_well_formed(captured):
    frames = captured.frames()
    assert not capture.unaccounted(frames)
    assert not [frame for frame in frames if frame.ws_malformed or frame.iwarp_mpa_bad_length]
    verdicts = captured.crc_verdicts()
    assert verdicts["Bad"] == 0
    assert verdicts["Good"] == sum(len(capture.fpdus(frame)) for frame in frames) > 0
    for queue, msns in capture.messages(frames).items():
        assert msns == list(range(1, len(msns) + 1)), queue
    assert_start_up(frames)
    return frames


def assert_start_up(frames):
    """The first frame each way, and only it, is a Request or a Reply; CRC on, not rejected."""
    for stream in {frame.tcp_stream for frame in frames}:
        ours = [frame for frame in frames if frame.tcp_stream == stream]
        assert ours[0].iwarp_mpa_key_req and ours[1].iwarp_mpa_key_rep
        for frame in ours[:2]:
            assert frame.iwarp_mpa_rev in ("1", "2")
            assert (frame.iwarp_mpa_crc_flag, frame.iwarp_mpa_rej_flag) == ("1", "0")
            assert frame.iwarp_mpa_marker_flag == "0"
        assert not any(frame.iwarp_mpa_key_req or frame.iwarp_mpa_key_rep for frame in ours[2:])
        assert capture.rtr_count(ours) == capture.rtr_count(ours[2:3]) <= 1


@pytest.mark.parametrize("size", [64, 60000])
def test_rping(start, wire, port, size):
    frames = run(start, wire, port, f"rping -s -C 5 -V -S {size}",
                 f"rping -c -a {{address}} -C 5 -V -S {size}")
    seen = capture.opcodes(frames)
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
    seen = capture.opcodes(run(start, wire, port, line, line + " {address}"))
    assert wanted <= set(seen) <= wanted | {iwarp.SEND}


def test_many_connections_are_each_well_formed(start, wire, port):
    frames = run(start, wire, port, "ucmatose -c 10 -C 5 -S 3000",
                 "ucmatose -s {address} -c 10 -C 5 -S 3000")
    assert len({frame.tcp_stream for frame in frames}) == 10
    assert set(capture.opcodes(frames)) == {iwarp.SEND}


@pytest.mark.parametrize("wire", ["lo"], indirect=True)
def test_wrong_crc_and_our_terminate_are_decoded(start, wire, port):
    """The dissector does find a wrong CRC, and reads our answer to it as we mean it."""
    _, captured = wire
    start.server("rping -s -P", port)
    with RpingPeer.started(port) as peer:
        peer.send_ulpdu(iwarp.tagged(iwarp.WRITE, 1, 0))
        peer.send_ulpdu(iwarp.tagged(iwarp.WRITE, 1, 0, b"x" * 16), crc_flip=1)
        peer.recv_terminate()
    captured.stop()
    assert captured.crc_verdicts() == {"Good": 2, "Bad": 1}
    text = capture.tshark(captured.path, "-Y", "iwarp_rdma.opcode == 7", "-T", "fields",
                          *capture.columns(["iwarp_rdma.term_layer", "iwarp_rdma.term_etype_llp",
                                            "iwarp_rdma.term_errcode_llp"]))
    assert [int(value, 0) for value in text.split()] == [2, 0, 2]
