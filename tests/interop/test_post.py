# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program hears of a WR that siw cannot know, or that it must refuse."""

import ends
import pytest


def post(link, host, port, kind):
    """Without peer-to-peer: when a wrong FPDU comes right behind an RTR, siw's kernel panics."""
    host.mpa = "p2p=off"
    link.start_server("rping -s", port)
    program = link.run(host, f"{host.build}/tests/interop_post {link.server.address} {port} {kind}")
    assert program.wait_exit(ends.SECONDS_MAX) == 0
    return program.output()


@pytest.mark.parametrize("kind", ["write-imm", "send-imm", "cmp-swap", "fetch-add"])
def test_siw_knows_nothing_of_rfc_7306(anywarp_initiates, host, port, kind):
    """Nothing is sent: the connection is as good as before, and ended by the program."""
    said = post(anywarp_initiates, host, port, kind)
    assert "post EOPNOTSUPP\n" in said
    assert "terminated" not in said


@pytest.mark.parametrize("kind, completion, words", [
    ("write-stag", "success", "ddp: invalid stag"),
    ("read-stag", "Work Request Flushed Error", "rdmap: invalid stag"),
    ("send-long", "success", "ddp: no buffer available"),
])
def test_terminate_of_siw_in_words(anywarp_initiates, host, port, kind, completion, words):
    """Its layer and type are swapped, which the log says and undoes. The completion does not depend
    on reserved bits: a Write and a Send were complete before, and the Read is flushed."""
    said = post(anywarp_initiates, host, port, kind)
    assert f"wc {completion}\n" in said
    assert "event RDMA_CM_EVENT_DISCONNECTED\n" in said
    assert f"layer and type swapped as by siw on x86: {words}" in said
