# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Start-ups that end after siw's Reply and before an RTR. Linux's iw_cm panics then (docs/interop.md),
so each test has a guest of its own; what our program hears is looked at."""

import conftest
import ends
import pytest

pytestmark = pytest.mark.needs(ours=ends.USER, theirs=ends.SIW)


@pytest.fixture
def theirs(joined):
    with conftest.booted_end(joined, 1, ends.SIW) as end:
        yield end


@pytest.fixture
def ours(joined):
    return ends.HostEnd(joined, conftest.BUILD)


@pytest.mark.parametrize("policy, words", [
    # siw answers an offer of Send with Write, which was not offered.
    ({"rtr": "send"}, "no ready-to-receive message in common: this end sends send, the peer takes write: "),
    # siw answers 0x3FFF with numbers.
    ({"ird_ord": "ulp"}, " inbound reads, and this end takes "),
])
def test_nothing_in_common(ours_initiate, ours, port, policy, words):
    ours.ask_for(**policy)
    ours_initiate.start_server("rping -s", port)
    client = ours_initiate.start_client("rping -c -a {address} -v -C 5", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_CONNECT_ERROR" in client.output()
    assert words in client.output()
