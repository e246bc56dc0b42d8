# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Many connections at once."""

import itertools

import ends
import pytest

# libsiw refuses the 145th ring that siw gives to one process (docs/interop.md), and ucmatose has four a connection.
PROGRAMS, CONNECTIONS_EACH = 2, 32
RPINGS, PINGS = 16, 200
# ucmatose's server sends first.
pytestmark = pytest.mark.usefixtures("peer_to_peer")


def test_three_connections(link, port):
    line = "ucmatose -c 3 -C 10 -S 1000"
    both = link.pair(port, line, line + " -s {address}")
    assert all("return status 0" in said for said in both)


def test_sixty_four_connections_at_once(link, port):
    """Each exchanges messages both ways."""
    line = f"ucmatose -c {CONNECTIONS_EACH} -C 10 -S 1000"
    ports = list(itertools.islice(itertools.count(port * 2), PROGRAMS))
    both = [link.start_server(line, each) for each in ports]
    both += [link.start_client(line + " -s {address}", each) for each in ports]
    for program in reversed(both):
        assert program.wait_exit(ends.SECONDS_MAX) == 0, link.report()
        assert "return status 0" in program.output()


@pytest.mark.needs(theirs=ends.KMOD)
def test_sixty_four_connections_of_one_process(link, port):
    """256 rings."""
    line = f"ucmatose -c {PROGRAMS * CONNECTIONS_EACH} -C 10 -S 1000"
    both = link.pair(port, line, line + " -s {address}")
    assert all("return status 0" in said for said in both)


def test_a_server_with_threads_for_each_client(link, port):
    server = link.start_server("rping -s -P -S 1000", port)
    clients = []
    for _ in range(RPINGS):
        # rping of this age loses one of two Requests that come at the same moment.
        clients.append(link.start_client(f"rping -c -a {{address}} -V -v -C {PINGS} -S 1000", port))
        clients[-1].wait_output("ping data: ", ends.SECONDS_MAX)
    for client in clients:
        link.wait_rping(link.client, client)
        assert client.output().count("ping data: ") == PINGS, link.report()
    assert server.status() is None
