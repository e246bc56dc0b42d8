# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest's six programs, which post as much as they may and count what came."""

import pytest

BANDWIDTH = ["ib_write_bw", "ib_read_bw", "ib_send_bw"]
PROGRAMS = [*BANDWIDTH, "ib_write_lat", "ib_read_lat", "ib_send_lat"]
MIB = 1 << 20
FEW, MANY = 10, 1000


@pytest.mark.parametrize("name", BANDWIDTH)
def test_every_power_of_two(link, port, name):
    """From two octets to eight MiB."""
    assert link.perftest(port, name, f"-a -n {FEW}") == [1 << bit for bit in range(1, 24)]


@pytest.mark.parametrize("size", [1, 65537, MIB])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes(link_of_mtu, port, name, size):
    count = MANY if size == 1 else FEW
    assert link_of_mtu.perftest(port, name, f"-s {size} -n {count}") == [size]


@pytest.mark.parametrize("name", BANDWIDTH)
def test_four_qps(link, port, name):
    assert link.perftest(port, name, f"-s 4096 -n {MANY} -q 4") == [4096]


@pytest.mark.parametrize("name", ["ib_write_bw", "ib_send_bw"])
def test_both_ways_at_once(link, port, name):
    assert link.perftest(port, name, f"-s 4096 -n {MANY} -b") == [4096]


def test_completion_events(link, port):
    assert link.perftest(port, "ib_send_lat", f"-s 4096 -n {MANY} -e") == [4096]


def test_shared_receive_queue(link, port):
    assert link.perftest(port, "ib_send_bw", f"-s 4096 -n {MANY} -q 2 --use-srq") == [4096]
