# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What MPA's start-up agrees on: CRCs, the peer-to-peer model, revision 1, markers, IRD and ORD, our
private extension. The frames themselves are looked at, since a connection may well come to be
without what was asked for."""

import conftest
import ends
import iwarp
import pytest

PINGS = 5
# Flags of our private extension: an offer in a Request, where the other says that it takes waits, an agreement in a Reply.
OFFER, AGREEMENT = 0x04, 0x02
# siw does not clear the pad of a payload that it copies; all else is held against it.
SIW_PAD = "pad is not zero"
OF_USER = pytest.mark.needs(ours=ends.USER)
OF_SIW, OF_KMOD = pytest.mark.needs(theirs=ends.SIW), pytest.mark.needs(theirs=ends.KMOD)


class Observed:
    """Runs traffic over one link and gives its one connection, as it was on the wire."""

    def __init__(self, joined, folder, port):
        self.joined, self.path, self.port = joined, folder / "wire", port

    def rping(self, link, options="-S 1000"):
        with self.joined.capture(self.path, self.port) as captured:
            link.rping(self.port, options, PINGS)
            only, = right(captured.stop())
            return only


def right(recorded):
    """The conversations of a capture in which nothing is wrong."""
    problems = recorded.problems()
    if conftest.THEIRS == ends.SIW:
        problems = [line for line in problems if not line.startswith(SIW_PAD)]
    assert not problems
    return recorded.conversations


@pytest.fixture
def observed(joined, ours, theirs, tmp_path, port):  # pylint: disable=unused-argument
    return Observed(joined, tmp_path, port)


@pytest.mark.parametrize("ours_ask", [True, False])
@pytest.mark.parametrize("theirs_ask", [False, True])
def test_crc(link, ours, theirs, observed, theirs_ask, ours_ask):
    theirs.ask_for(crc=theirs_ask)
    ours.ask_for(crc=ours_ask)
    only = observed.rping(link)
    initiator_asks, responder_asks = (ours_ask, theirs_ask) if link.client is ours else (theirs_ask, ours_ask)
    assert bool(only.initiator.start.flags & iwarp.CRC) == initiator_asks
    # siw requires CRCs only as an initiator: its Reply has the Request's flag.
    assert only.crc_on == (initiator_asks or (responder_asks and link.server.kind != ends.SIW))


@OF_SIW
def test_siw_that_refuses_crcs(link, theirs, port):
    """mpa_crc_strict without mpa_crc_required; we insist, and each end is told."""
    theirs.ask_for(mpa_crc_strict=True)
    link.start_server("rping -s -V -C 5", port)
    client = link.start_client("rping -c -a {address} -V -v -C 5", port)
    client.wait_exit(ends.SECONDS_MAX)
    assert "ping data" not in client.output()
    assert "RDMA_CM_EVENT_REJECTED" in client.output() or link.client is theirs


@OF_SIW
def test_siw_that_refuses_crcs_and_we_need_none(link, ours, theirs, observed):
    theirs.ask_for(mpa_crc_strict=True)
    ours.ask_for(crc=False)
    assert not observed.rping(link).crc_on


@pytest.mark.parametrize("theirs_ask", [False, True])
@pytest.mark.parametrize("ours_ask", [True, False])
def test_peer_to_peer(link, ours, theirs, observed, theirs_ask, ours_ask):
    """The initiator decides."""
    theirs.ask_for(p2p=theirs_ask)
    ours.ask_for(p2p=ours_ask)
    wanted = ours_ask if link.client is ours else theirs_ask
    only = observed.rping(link)
    assert only.initiator.is_peer_to_peer() == only.responder.is_peer_to_peer() == wanted
    assert only.rtr() == (iwarp.WRITE if wanted else None)


@OF_USER
@pytest.mark.parametrize("kind, opcode", [("write", iwarp.WRITE), ("read", iwarp.READ_REQUEST)])
def test_we_offer_one_kind_of_rtr(ours_initiate, ours, observed, kind, opcode):
    ours.ask_for(rtr=kind)
    assert observed.rping(ours_initiate).rtr() == opcode


@OF_USER
@OF_KMOD
def test_we_offer_send_as_rtr(ours_initiate, ours, observed):
    """siw has none in common with that: test_fatal.py."""
    ours.ask_for(rtr="send")
    assert observed.rping(ours_initiate).rtr() == iwarp.SEND


@OF_SIW
@pytest.mark.parametrize("kind, opcode", [(0x80, iwarp.WRITE), (0x40, iwarp.READ_REQUEST)])
def test_siw_offers_one_kind_of_rtr(theirs_initiate, theirs, observed, kind, opcode):
    theirs.ask_for(p2p=True, rtr_type=kind)
    assert observed.rping(theirs_initiate).rtr() == opcode


@OF_SIW
def test_revision_1_of_ours(ours_initiate, ours, observed, port):
    """siw answers with IRD and ORD of 0, so there can be no Reads: Sends and Writes alone."""
    ours.ask_for(revision=1)
    with observed.joined.capture(observed.path, port) as captured:
        assert ours_initiate.perftest(port, "ib_send_bw", "-s 1000 -n 100") == [1000]
        for each in right(captured.stop()):
            assert (each.initiator.start.revision, each.responder.start.revision) == (1, 1)


@OF_KMOD
def test_revision_1_of_ours_with_reads(ours_initiate, ours, observed):
    ours.ask_for(revision=1)
    only = observed.rping(ours_initiate)
    assert (only.initiator.start.revision, only.responder.start.revision) == (1, 1)


def test_revision_1_of_theirs(theirs_initiate, theirs, observed):
    theirs.ask_for(revision=1)
    only = observed.rping(theirs_initiate)
    assert (only.initiator.start.revision, only.responder.start.revision) == (1, 1)


@OF_SIW
def test_markers_are_refused(ours_initiate, ours, port):
    ours.ask_for(markers=True)
    ours_initiate.start_server("rping -s", port)
    client = ours_initiate.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_REJECTED" in client.output()


@OF_SIW
def test_markers_of_ours_refused_by_siw_as_initiator(theirs_initiate, ours, port):
    ours.ask_for(markers=True)
    theirs_initiate.start_server("rping -s", port)
    client = theirs_initiate.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "ping data" not in client.output()


@OF_KMOD
@pytest.mark.parametrize("ours_ask", [True, False])
@pytest.mark.parametrize("theirs_ask", [False, True])
def test_markers(link, ours, theirs, observed, theirs_ask, ours_ask):
    """Each end gets them when it asks."""
    theirs.ask_for(markers=theirs_ask)
    ours.ask_for(markers=ours_ask)
    only = observed.rping(link, "-S 4000")
    client_asks, server_asks = (ours_ask, theirs_ask) if link.client is ours else (theirs_ask, ours_ask)
    assert bool(only.initiator.start.flags & iwarp.MARKERS) == client_asks
    assert bool(only.responder.start.flags & iwarp.MARKERS) == server_asks


@OF_USER
@OF_SIW
def test_ird_and_ord_left_to_the_programs(theirs_initiate, ours, port):
    """siw takes 0x3FFF for a number, and a number of Reads that it cannot serve."""
    ours.ask_for(ird_ord="ulp")
    server = theirs_initiate.start_server("rping -s", port)
    client = theirs_initiate.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_CONNECT_ERROR" in client.output()
    server.wait_exit(ends.SECONDS_MAX)


@OF_USER
@OF_KMOD
def test_ird_and_ord_left_to_both_programs(link, ours, observed):
    ours.ask_for(ird_ord="ulp")
    observed.rping(link)


def test_the_offer_of_our_extension(ours_initiate, ours, theirs, observed):
    """siw sends an offer back as it came; that is no agreement. The module offers and agrees where it is told to."""
    for end in (ours, theirs):
        if end.kind == ends.KMOD:
            end.ask_for(extensions=True)
    only = observed.rping(ours_initiate)
    assert only.initiator.start.flags & OFFER
    expected = only.initiator.start.flags & (OFFER | AGREEMENT) if theirs.kind == ends.SIW else AGREEMENT
    assert only.responder.start.flags & (OFFER | AGREEMENT) == expected


@OF_KMOD
def test_theirs_agree_to_nothing(ours_initiate, observed):
    assert not observed.rping(ours_initiate).responder.start.flags & (OFFER | AGREEMENT)


def flags_when_theirs_initiate(link, observed):
    only = observed.rping(link)
    return [each.start.flags & (OFFER | AGREEMENT) for each in (only.initiator, only.responder)]


def test_theirs_offer_nothing(theirs_initiate, observed):
    assert flags_when_theirs_initiate(theirs_initiate, observed) == [0, 0]


@OF_KMOD
def test_theirs_offer_what_they_are_told(theirs_initiate, theirs, observed):
    theirs.ask_for(extensions=True)
    assert flags_when_theirs_initiate(theirs_initiate, observed) == [OFFER, AGREEMENT]
