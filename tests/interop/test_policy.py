# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What MPA's start-up agrees on: CRCs, the peer-to-peer model, revision 1, markers, IRD and ORD, our
private extension. The frames themselves are looked at, since a connection may well come to be
without what was asked for."""

import ends
import iwarp
import pytest

PINGS = 5
# Flags of our private extension: an offer in a Request, an agreement in a Reply.
OFFER, AGREEMENT = 0x04, 0x02
# siw does not clear the pad of a payload that it copies; all else is held against it.
SIW_PAD = "pad is not zero"


class Observed:
    """Runs traffic over one link and gives its one connection, as it was on the wire."""

    def __init__(self, host, folder, port):
        self.host, self.path, self.port = host, folder / "wire", port

    def rping(self, link, options="-S 1000"):
        with self.host.capture(self.path, self.port) as captured:
            link.rping(self.port, options, PINGS)
            return only_connection(captured.stop())


def only_connection(recorded):
    assert not [line for line in recorded.problems() if not line.startswith(SIW_PAD)]
    only, = recorded.conversations
    return only


@pytest.fixture
def observed(host, tmp_path, port):
    return Observed(host, tmp_path, port)


def is_host(end):
    return isinstance(end, ends.HostEnd)


@pytest.mark.parametrize("ours", ["on", "off"])
@pytest.mark.parametrize("required", [False, True])
def test_crc(link, siw, host, observed, required, ours):
    siw(mpa_crc_required=required)
    host.mpa = f"crc={ours}"
    only = observed.rping(link)
    asked = required if is_host(link.server) else ours == "on"
    assert bool(only.initiator.start.flags & iwarp.CRC) == asked
    # siw requires CRCs only as an initiator: its Reply has the Request's flag.
    responder_asks = ours == "on" if is_host(link.server) else False
    assert only.crc_on == (asked or responder_asks)


def test_siw_that_refuses_crcs(link, siw, host, port):
    """mpa_crc_strict without mpa_crc_required; we insist, and each end is told."""
    siw(mpa_crc_strict=True)
    link.start_server("rping -s -V -C 5", port)
    client = link.start_client("rping -c -a {address} -V -v -C 5", port)
    client.wait_exit(ends.SECONDS_MAX)
    assert "ping data" not in client.output()
    assert "RDMA_CM_EVENT_REJECTED" in client.output() or is_host(link.server)


def test_siw_that_refuses_crcs_and_we_need_none(link, siw, host, observed):
    siw(mpa_crc_strict=True)
    host.mpa = "crc=off"
    assert not observed.rping(link).crc_on


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("ours", ["on", "off"])
def test_peer_to_peer(link, siw, host, observed, theirs, ours):
    """The initiator decides."""
    siw(peer_to_peer=theirs)
    host.mpa = f"p2p={ours}"
    wanted = theirs if is_host(link.server) else ours == "on"
    only = observed.rping(link)
    assert only.initiator.is_peer_to_peer() == only.responder.is_peer_to_peer() == wanted
    assert only.rtr() == (iwarp.WRITE if wanted else None)


@pytest.mark.parametrize("kind, opcode", [("write", iwarp.WRITE), ("read", iwarp.READ_REQUEST)])
def test_we_offer_one_kind_of_rtr(anywarp_initiates, host, observed, kind, opcode):
    host.mpa = f"rtr={kind}"
    assert observed.rping(anywarp_initiates).rtr() == opcode


@pytest.mark.parametrize("kind, opcode", [(0x80, iwarp.WRITE), (0x40, iwarp.READ_REQUEST)])
def test_siw_offers_one_kind_of_rtr(siw_initiates, siw, observed, kind, opcode):
    siw(peer_to_peer=True, rtr_type=kind)
    assert observed.rping(siw_initiates).rtr() == opcode


def test_revision_1_of_ours(anywarp_initiates, host, tmp_path, port):
    """siw answers with IRD and ORD of 0, so there can be no Reads: Sends and Writes alone."""
    host.mpa = "revision=1"
    with host.capture(tmp_path / "wire", port) as captured:
        assert anywarp_initiates.perftest(port, "ib_send_bw", "-s 1000 -n 100") == [1000]
        recorded = captured.stop()
    assert not [line for line in recorded.problems() if not line.startswith(SIW_PAD)]
    for each in recorded.conversations:
        assert (each.initiator.start.revision, each.responder.start.revision) == (1, 1)


def test_revision_1_of_siw(siw_initiates, siw, observed):
    siw(mpa_version=1)
    only = observed.rping(siw_initiates)
    assert (only.initiator.start.revision, only.responder.start.revision) == (1, 1)


def test_markers_are_refused(anywarp_initiates, host, port):
    host.mpa = "markers=on"
    anywarp_initiates.start_server("rping -s", port)
    client = anywarp_initiates.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_REJECTED" in client.output()


def test_markers_of_ours_refused_by_siw_as_initiator(siw_initiates, host, port):
    host.mpa = "markers=on"
    siw_initiates.start_server("rping -s", port)
    client = siw_initiates.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "ping data" not in client.output()


def test_ird_and_ord_left_to_the_programs(siw_initiates, host, port):
    """siw takes 0x3FFF for a number, and a number of Reads that it cannot serve."""
    host.mpa = "ird_ord=ulp"
    server = siw_initiates.start_server("rping -s", port)
    client = siw_initiates.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_CONNECT_ERROR" in client.output()
    server.wait_exit(ends.SECONDS_MAX)


def test_the_offer_of_our_extension_does_no_harm(anywarp_initiates, observed):
    """siw sends an offer back as it came; that is no agreement."""
    only = observed.rping(anywarp_initiates)
    assert only.initiator.start.flags & OFFER
    assert only.responder.start.flags & (OFFER | AGREEMENT) == OFFER


def test_siw_is_offered_nothing(siw_initiates, observed):
    only = observed.rping(siw_initiates)
    assert not (only.initiator.start.flags | only.responder.start.flags) & (OFFER | AGREEMENT)
