# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest's six programs, which post as much as they may and count what came."""

import pytest

BANDWIDTH = ["ib_write_bw", "ib_read_bw", "ib_send_bw"]
PROGRAMS = [*BANDWIDTH, "ib_write_lat", "ib_read_lat", "ib_send_lat"]
MIB = 1 << 20
FEW, MANY = 5, 1000
COUNTS = {1: MANY, 65537: 100, MIB: FEW}
# ib_write_lat's server posts first.
pytestmark = pytest.mark.usefixtures("peer_to_peer")


@pytest.mark.parametrize("name", BANDWIDTH)
def test_every_power_of_two(link, port, name):
    """From two octets to eight MiB."""
    assert link.perftest(port, name, f"-a -n {FEW}") == [1 << bit for bit in range(1, 24)]


@pytest.mark.parametrize("size", COUNTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes(link, port, mtu, name, size):
    assert link.perftest(port, name, f"-s {size} -n {COUNTS[size]}") == [size]


@pytest.mark.parametrize("name", BANDWIDTH)
def test_four_qps(link, port, name):
    assert link.perftest(port, name, f"-s 4096 -n {MANY} -q 4") == [4096]


@pytest.mark.parametrize("name", ["ib_write_bw", "ib_send_bw"])
def test_both_ways_at_once(link, port, name):
    assert link.perftest(port, name, f"-s 4096 -n {MANY} -b") == [4096]


def test_completion_events(link, port):
    """ib_send_bw -e loses an event now and then, on any device, and waits for ever; not this one."""
    assert link.perftest(port, "ib_send_lat", f"-s 4096 -n {MANY} -e") == [4096]


def test_shared_receive_queue(link, port):
    """Of one QP: perftest's server counts what an SRQ takes for the QP for which it posted that receive, not for the one that
    received, so that with several QPs a client gets more credits than it has sent messages, and may wait for ever."""
    assert link.perftest(port, "ib_send_bw", f"-s 4096 -n {MANY} --use-srq") == [4096]
