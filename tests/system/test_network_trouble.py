# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ports in use, hosts that refuse or cannot be reached, processes that die in the middle: a clear
error soon, and the next client works."""

import signal
import socket

import beds
import pytest
from program import SLOWNESS

SECONDS_MAX = 20 * SLOWNESS


def assert_next_client_works(start, port):
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 5 -v -V")
    assert client.wait_exit() == 0
    assert client.output().count("ping data: ") == 5


def assert_fails_soon(program, *texts):
    assert program.wait_exit(SECONDS_MAX) > 0
    assert any(text in program.output() for text in texts), program.output()


@pytest.mark.parametrize("line", ["rping -s -a 127.0.0.1", "rdma_server", "ucmatose"])
def test_port_in_use_by_a_sockets_program(start, port, line):
    with socket.create_server(("", port)):
        assert_fails_soon(start(f"{line} -p {port}"), "Address already in use")


def test_port_in_use_by_another_of_ours(start, port):
    first = start.server("rping -s -P", port)
    assert_fails_soon(start(f"rping -s -p {port}"), "Address already in use")
    assert_next_client_works(start, port)
    assert first.status() is None


def test_address_that_is_not_ours(start, port):
    assert_fails_soon(start(f"rping -s -a 192.0.2.200 -p {port}"),
                      "Cannot assign requested address", "No such device")


@pytest.mark.parametrize("line", [
    "rping -c -a 127.0.0.1", "rping -c -a ::1", "ucmatose -s 127.0.0.1", "ucmatose -s ::1",
    "rdma_client -s 127.0.0.1", "ib_write_bw -R -F 127.0.0.1"])
def test_refused(start, port, line):
    """perftest names the event by its number, 8 for RDMA_CM_EVENT_REJECTED."""
    client = start(f"{line} -p {port}")
    assert_fails_soon(client, "REJECTED", "Connection refused", "event bl blka 8")


def test_no_route_to_host(start, port, veth1500):
    client = start(f"rping -c -a {beds.NO_ROUTE} -p {port}", prefix=veth1500.client_prefix)
    assert_fails_soon(client, "Network is unreachable", "RDMA_CM_EVENT_ADDR_ERROR",
                      "RDMA_CM_EVENT_UNREACHABLE", "RDMA_CM_EVENT_ROUTE_ERROR")


def test_no_such_neighbour(start, port, veth1500):
    client = start(f"rping -c -a {beds.ABSENT_NEIGHBOUR} -p {port}", prefix=veth1500.client_prefix)
    assert_fails_soon(client, "RDMA_CM_EVENT_UNREACHABLE", "RDMA_CM_EVENT_ADDR_ERROR")


def test_unknown_host_name(start, port):
    assert_fails_soon(start(f"rping -c -a no-such-host.invalid -p {port}"), "getaddrinfo")


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_client_dies_and_the_next_works(start, port, signum):
    server = start.server("rping -s -P -S 60000", port)
    bystander = start(f"rping -c -a 127.0.0.1 -p {port} -v")
    bystander.wait_output("ping data")
    victim = start(f"rping -c -a 127.0.0.1 -p {port} -v -S 60000")
    victim.wait_output("ping data")
    victim.kill(signum)
    assert_next_client_works(start, port)
    seen = bystander.output().count("ping data")
    bystander.wait_until(lambda: bystander.output().count("ping data") > seen, "more pings")
    assert server.status() is None


def test_server_ends_when_its_only_client_dies(start, port):
    server = start.server("rping -s -v", port)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -v")
    client.wait_output("ping data")
    client.kill()
    assert server.wait_exit(SECONDS_MAX) is not None
    assert "DISCONNECT EVENT" in server.output()


def test_server_dies_and_its_successor_takes_the_port(start, port):
    server = start.server("rping -s -v", port)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -v")
    client.wait_output("ping data")
    server.kill()
    assert client.wait_exit(SECONDS_MAX) is not None
    assert "DISCONNECT EVENT" in client.output()
    start.server("rping -s -P", port)
    assert_next_client_works(start, port)


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
@pytest.mark.parametrize("victim", ["server", "client"])
def test_perftest_ends_when_the_other_end_dies(start, port, program, victim):
    server = start.server(f"{program} -R -F -D 60", port)
    client = start(f"{program} -R -F -D 60 -p {port} 127.0.0.1")
    client.wait_output("#bytes")
    ends = {"server": server, "client": client}
    ends.pop(victim).kill()
    assert ends.popitem()[1].wait_exit(SECONDS_MAX) is not None
    again = start.server("rping -s -P", port)
    assert_next_client_works(start, port)
    assert again.status() is None
