# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program hears of a WR that siw cannot know, or that it must refuse."""

import conftest
import ends
import pytest

pytestmark = pytest.mark.needs(ours=ends.USER)


def post(link, ours, port, kind):
    """Without peer-to-peer: when a wrong FPDU comes right behind an RTR, siw's kernel panics."""
    ours.ask_for(p2p=False)
    link.start_server("rping -s", port)
    program = link.run(ours, f"{ours.build}/tests/interop_post {link.server.address} {port} {kind}")
    assert program.wait_exit(ends.SECONDS_MAX) == 0
    return program.output()


@pytest.mark.parametrize("kind", ["write-imm", "send-imm", "cmp-swap", "fetch-add", "atomic-write"])
def test_a_peer_without_rfc_7306(ours_initiate, ours, port, kind):
    """Nothing is sent: the connection is as good as before, and ended by the program."""
    said = post(ours_initiate, ours, port, kind)
    assert "post EOPNOTSUPP\n" in said
    assert "terminated" not in said


# How the one request completes, and what the log calls the peer's Terminate.
INVALID_STAG = ("success", "ddp: invalid stag")
TERMINATES = {
    ends.KMOD: {"write-stag": INVALID_STAG, "read-stag": ("remote access error", "rdmap: invalid stag"),
                "send-long": ("success", "ddp: message too long for its buffer")},
    ends.SIW: {"write-stag": INVALID_STAG, "read-stag": ("Work Request Flushed Error", "rdmap: invalid stag"),
               "send-long": ("success", "ddp: no buffer available")},
}


@pytest.mark.parametrize("kind, expected", TERMINATES[conftest.THEIRS].items())
def test_terminate_in_words(ours_initiate, ours, theirs, port, kind, expected):
    """siw's layer and type are swapped, which the log says and undoes. The completion does not depend
    on reserved bits: a Write and a Send were complete before, and the Read is flushed."""
    completion, words = expected
    said = post(ours_initiate, ours, port, kind)
    assert f"wc {completion}\n" in said
    assert "event RDMA_CM_EVENT_DISCONNECTED\n" in said
    swapped = "layer and type swapped as by siw on x86: " if theirs.kind == ends.SIW else ""
    assert f"peer terminated the stream{', ' if swapped else ': '}{swapped}{words}" in said
