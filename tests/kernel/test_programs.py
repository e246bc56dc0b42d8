# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma-core's other programs: ucmatose, rstream, riostream, rcopy, ucmatose's many connections."""

import itertools
import re
import select

import ends
import pytest

CONNECTIONS = 64
RPINGS, PINGS = 16, 100
MODES = {"nonblocking": "", "blocking": "-T b", "polling": "-T a", "sleeping": "-T b -T a"}
ROW = r"(?m)^\w+ +[\d.]+[kmg]? +\d+[kmb]? +\d+[kmb]? +[\d.]+[kmg]? +[\d.]+s +[\d.]+ +[\d.]+$"


def test_ucmatose(link, port):
    line = "ucmatose -c 3 -C 10 -S 1000"
    both = link.pair(port, line, line + " -s {address}")
    assert all("return status 0" in said for said in both)


def test_sixty_four_connections_at_once(of_ours, link, port):  # pylint: disable=unused-argument
    """Each exchanges messages both ways. siw fails at the 37th: the 145th ring that it gives to one process has the key
    that says to libsiw that there is none."""
    line = f"ucmatose -c {CONNECTIONS} -C 10 -S 1000"
    for said in link.pair(port, line, line + " -s {address}"):
        assert "return status 0" in said


def test_a_server_with_threads_for_each_client(link, port):
    server = link.start_server("rping -s -P -S 1000", port)
    clients = []
    for _ in range(RPINGS):
        # rping of this age loses one of two Requests that come at the same moment.
        clients.append(link.start_client(f"rping -c -a {{address}} -V -v -C {PINGS} -S 1000", port))
        clients[-1].wait_output("ping data: ", ends.SECONDS_MAX)
    for client in clients:
        assert client.wait_exit(ends.SECONDS_MAX) == 0, link.report()
        assert client.output().count("ping data: ") == PINGS, client.report()
    assert server.status() is None


def is_hung_up_early(end, status, options):
    """rdma-core's rpoll tells POLLHUP once the peer is gone, with octets still to be read; rstream gives up
    then, with its revents as the status. The server, which heard everything, is done. Seen on siw as well;
    on the libraries of user space, whose rpoll is another one, never."""
    return end.device and "-T a" in options and status & select.POLLHUP


def stream(link, port, name, options, address="{address}", server_options=""):
    server = link.start_server(f"{name} {options} {server_options}", port)
    client = link.start_client(f"{name} -s {address} {options}", port)
    assert server.wait_exit(ends.SECONDS_MAX) == 0, link.report()
    status = client.wait_exit(ends.SECONDS_MAX)
    whole = [server.output()]
    if not is_hung_up_early(link.client, status, options):
        assert status == 0, link.report()
        whole.append(client.output())
    for said in whole:
        assert "failed" not in said, link.report()
        assert len(re.findall(ROW, said)) == 1, link.report()


@pytest.mark.parametrize("size, mode", [(16, "nonblocking"), (1000, "polling"), (65536, "blocking"),
                                        (1000000, "sleeping")])
def test_rstream_is_verified(link, port, size, mode):
    count = min(200, 4000000 // size)
    stream(link, port, "rstream", f"-T v -S {size} -C {count} -I 2 {MODES[mode]}")


@pytest.mark.parametrize("size, mode", [(17, "sleeping"), (65536, "polling")])
def test_riostream_is_verified(link, port, size, mode):
    stream(link, port, "riostream", f"-T v -S {size} -C 100 -I 2 {MODES[mode]}")


def test_rstream_over_ipv6(link, port):
    stream(link, port, "rstream", "-T v -T b -S 1000 -C 100", "{address6}", "-b ::")


@pytest.mark.parametrize("size", [1, 3000001])
def test_copies_are_whole(link, port, tmp_path, size):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(itertools.islice(itertools.cycle(range(251)), size)))
    server = link.start_server("rcopy", port)
    client = link.start_client(f"rcopy {source} {{address}}:{target}", port)
    assert client.wait_exit(ends.SECONDS_MAX) == 0, link.report()
    assert server.status() is None, link.report()  # it serves the next one
    assert target.read_bytes() == source.read_bytes()
