# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Verified pings: each is a Send, a Read, a Write and their answers."""

import ends
import pytest

SIZE_MIN, SIZE_MAX = 23, 65535  # rping's own


@pytest.mark.parametrize("size", [SIZE_MIN, 64, 1448, 8948, 60000, SIZE_MAX])
def test_sizes_are_verified(link, port, mtu, size):
    link.rping(port, f"-S {size}")


def test_a_thousand_pings(link, port):
    link.rping(port, count=1000)


def test_over_ipv6(link, port):
    line = "-V -v -C 10"
    _, client = link.pair(port, f"rping -s -a ::0 {line}", f"rping -c -a {{address6}} {line}")
    assert client.count("ping data: ") == 10


def test_a_persistent_server_serves_one_client_after_the_other(link, port):
    server = link.start_server("rping -s -P", port)
    for _ in range(3):
        client = link.start_client("rping -c -a {address} -V -v -C 10", port)
        link.wait_rping(link.client, client)
        assert client.output().count("ping data: ") == 10
    assert server.status() is None


def test_nobody_listens(ours_initiate, port):
    client = ours_initiate.start_client("rping -c -a {address} -v -C 1", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    assert "RDMA_CM_EVENT_REJECTED" in client.output(), ours_initiate.report()
    ours_initiate.rping(port)
