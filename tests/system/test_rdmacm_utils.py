# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The other programs of Debian's rdmacm-utils and ibverbs-utils."""

import re

import pytest


def both_end_well(server, client):
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0


def test_rdma_server_and_client(start, port):
    server = start.server("rdma_server", port)
    client = start(f"rdma_client -s 127.0.0.1 -p {port}")
    both_end_well(server, client)
    assert "rdma_client: end 0" in client.output()
    assert "rdma_server: end 0" in server.output()


def test_rdma_xserver_and_xclient(start, port):
    server = start.server("rdma_xserver -c r", port)
    client = start(f"rdma_xclient -s 127.0.0.1 -p {port} -c r")
    both_end_well(server, client)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("options", [
    "-c 1", "-c 10 -C 10 -S 100", "-c 10 -C 10 -S 100 -m", "-c 3 -C 50 -S 65536", "-c 100 -C 2",
    "-c 2 -C 0"])
def test_ucmatose(start, port, options, address):
    server = start.server(f"ucmatose -b {address} {options}", port)
    client = start(f"ucmatose -s {address} -p {port} {options}")
    both_end_well(server, client)
    for end in (server, client):
        assert "return status 0" in end.output()


def test_ucmatose_over_a_wildcard_listener(start, port):
    server = start.server("ucmatose -c 5", port)
    both_end_well(server, start(f"ucmatose -s 127.0.0.1 -f name -p {port} -c 5"))


def test_cmtime_times_every_step(start, port):
    """Its server runs for ever. Since rdma-core 52 it listens by TCP, too, on the port of its RDMA listener, which
    is one of TCP's over iWARP; as over siw, that is EADDRINUSE."""
    usage = start("cmtime -h")
    usage.wait_exit()
    if "[-S]" in usage.output():
        pytest.skip("this cmtime wants TCP's port of the same number for itself")
    server = start.server("cmtime -c 100", port)
    for _ in range(2):
        client = start(f"cmtime -s 127.0.0.1 -p {port} -c 100")
        assert client.wait_exit() == 0
    assert server.status() is None
    for step in ("create id", "resolve addr", "create qp", "connect", "disconnect"):
        assert re.search(rf"(?m)^{step}", client.output())


def test_ibv_devices_lists_one_device(start):
    devices = start("ibv_devices")
    assert devices.wait_exit() == 0
    names = [line.split()[0] for line in devices.output().splitlines()[2:]]
    assert names == ["anywarp0"]


def test_ibv_devinfo_tells_what_an_rnic_is(start):
    devinfo = start("ibv_devinfo -v")
    assert devinfo.wait_exit() == 0
    text = devinfo.output()
    for pattern in (r"hca_id:\s+anywarp0", r"transport:\s+iWARP \(1\)", r"phys_port_cnt:\s+1",
                    r"state:\s+PORT_ACTIVE \(4\)", r"link_layer:\s+Ethernet", r"GID\[ *0\]:"):
        assert re.search(pattern, text), pattern


@pytest.mark.parametrize("name, least", [("max_qp", 65536), ("max_qp_wr", 16384),
                                         ("max_sge", 30), ("max_mr_size", 2**40)])
def test_ibv_devinfo_limits(start, name, least):
    devinfo = start("ibv_devinfo -v")
    assert devinfo.wait_exit() == 0
    value = re.search(rf"\b{name}:\s+(\w+)", devinfo.output()).group(1)
    assert int(value, 0) >= least
