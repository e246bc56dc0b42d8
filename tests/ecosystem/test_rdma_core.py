# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs of rdma-core: rdmacm-utils and ibverbs-utils."""

import re

import pytest

import program as programs

in_rdmacm_utils = pytest.mark.program("rdmacm-utils: rping, ucmatose, cmtime, rdma_*")
in_rsockets = pytest.mark.program("rdmacm-utils: rstream, udpong")
in_pingpongs = pytest.mark.program("ibverbs-utils: ibv_rc_pingpong, ibv_srq_pingpong")
in_datagrams = pytest.mark.program("rdmacm-utils: udaddy, mckey")
only_roce = pytest.mark.personas("roce")


@in_rdmacm_utils
def test_rping_verifies(scene):
    port = scene.port()
    server = scene.server(f"rping -s -V -C 20 -S 4000 -p {port}", port)
    client = scene.client(f"rping -c -V -C 20 -S 4000 -a {scene.address} -p {port}")
    scene.ends_well(client, server)
    scene.carried(octets=20 * 2 * 4000)


@in_rdmacm_utils
@pytest.mark.parametrize("options", ["-c 10 -C 20 -S 1000", "-c 5 -C 0"])
@pytest.mark.reports("overlap")
def test_ucmatose(scene, options):
    port = scene.port()
    server = scene.server(f"ucmatose -b {scene.address} -p {port} {options}", port)
    client = scene.client(f"ucmatose -s {scene.address} -p {port} {options}")
    scene.ends_well(client, server)
    assert "return status 0" in client.output() and "return status 0" in server.output()
    scene.carried(connections=int(options.split()[1]))


@in_rdmacm_utils
def test_cmtime(scene):
    port = scene.port()
    scene.server(f"cmtime -c 50 -p {port}", port)
    printed = scene.run(f"cmtime -s {scene.address} -c 50 -p {port}", far=True)
    assert re.search(r"(?m)^connect\b", printed)
    scene.carried(connections=50)


@in_rdmacm_utils
def test_rdma_client_and_server(scene):
    port = scene.port()
    server = scene.server(f"rdma_server -p {port}", port)
    client = scene.client(f"rdma_client -s {scene.address} -p {port}")
    scene.ends_well(client, server)
    scene.carried()


@in_rdmacm_utils
def test_rdma_xclient_and_xserver(scene):
    xclient_and_xserver(scene, "r")


@in_rdmacm_utils
@pytest.mark.personas("roce")
def test_rdma_xclient_and_xserver_over_xrc(scene):
    xclient_and_xserver(scene, "x")


def xclient_and_xserver(scene, kind):
    port = scene.port()
    server = scene.server(f"rdma_xserver -p {port} -c {kind}", port)
    client = scene.client(f"rdma_xclient -s {scene.address} -p {port} -c {kind}")
    scene.ends_well(client, server)
    scene.carried()


@in_rsockets
def test_rstream(scene):
    """-T v compares every octet that came."""
    port = scene.port()
    server = scene.server(f"rstream -p {port} -T v -S 4096 -C 100", port)
    client = scene.client(f"rstream -s {scene.address} -p {port} -T v -S 4096 -C 100")
    scene.ends_well(client, server)
    scene.carried(octets=100 * 4096)


@in_rsockets
@pytest.mark.datagrams
def test_udpong(scene):
    port = scene.port()
    scene.start(f"udpong -b {scene.address} -p {port} -T e")
    client = scene.client(f"udpong -s {scene.address} -p {port} -T e -C 100 -S 512")
    scene.ends_well(client)
    scene.carried_datagrams(100)


@pytest.mark.program("ibverbs-utils: ibv_devices, ibv_devinfo, ibv_asyncwatch")
@pytest.mark.one_host
def test_ibv_devinfo(scene):
    printed = scene.run("ibv_devinfo -v")
    assert "anywarp0" in scene.run("ibv_devices")
    wanted = {"iwarp": r"transport:\s+iWARP \(1\)", "roce": r"transport:\s+InfiniBand \(0\)"}
    assert re.search(wanted[scene.persona], printed)
    assert re.search(r"state:\s+PORT_ACTIVE", printed)
    assert re.search(r"link_layer:\s+Ethernet", printed)
    assert "192.0.2.1" in printed.lower() or "c000:0201" in printed.lower()


@pytest.mark.program("ibverbs-utils: ibv_devices, ibv_devinfo, ibv_asyncwatch")
@pytest.mark.one_host
def test_ibv_asyncwatch(scene):
    """It sleeps on the device's fd until it is ended."""
    watch = scene.start("ibv_asyncwatch")
    watch.wait_output(r"async event FD \d+")
    assert watch.status() is None


@in_pingpongs
@only_roce
@pytest.mark.parametrize("line", [
    "ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -s 1000003 -n 50",
    "ibv_rc_pingpong -N", "ibv_rc_pingpong -t", "ibv_srq_pingpong -q 8", "ibv_srq_pingpong -e -q 16"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost")
def test_pingpong(scene, line):
    """-c compares every octet that came."""
    port = scene.port()
    check = " -c" if "rc_pingpong" in line else ""
    server = scene.server(f"{line} -g 0{check} -p {port}", port)
    client = scene.client(f"{line} -g 0{check} -p {port} {scene.address}")
    scene.ends_well(client, server)
    for end in (client, server):
        assert re.search(r"(?m)^\d+ iters in", end.output())
    scene.carried(octets=1000 * 4096)


@pytest.mark.program("ibverbs-utils: ibv_uc_pingpong")
@only_roce
@pytest.mark.parametrize("options", ["", "-e", "-s 1000003 -n 50"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost")
def test_uc_pingpong(scene, options):
    port = scene.port()
    server = scene.server(f"ibv_uc_pingpong -g 0 -c {options} -p {port}", port)
    client = scene.client(f"ibv_uc_pingpong -g 0 -c {options} -p {port} {scene.address}")
    scene.ends_well(client, server)
    for end in (client, server):
        assert re.search(r"(?m)^\d+ iters in", end.output())
    scene.carried(octets=1000 * 4096)


@pytest.mark.program("ibverbs-utils: ibv_xsrq_pingpong")
@only_roce
@pytest.mark.parametrize("options", ["", "-n 500", "-e -n 500", "-o -n 500", "-s 1000003 -n 50"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_xsrq_pingpong(scene, options):
    """One client: the server sends to several by each other's QPs, so that they had to share a domain."""
    port = scene.port()
    server = scene.server(f"ibv_xsrq_pingpong -g 0 {options} -p {port}", port)
    client = scene.client(f"ibv_xsrq_pingpong -g 0 {options} -p {port} {scene.address}")
    scene.ends_well(client, server)
    for end in (client, server):
        assert re.search(r"(?m)^success", end.output())
    scene.carried(connections=2)


@pytest.mark.program("ibverbs-utils: ibv_ud_pingpong")
@only_roce
@pytest.mark.parametrize("options", ["", "-e", "-s 1024 -n 200"])
@pytest.mark.reports("overlap", "wakeup-lost")
@pytest.mark.datagrams
def test_ud_pingpong(scene, options):
    port = scene.port()
    server = scene.server(f"ibv_ud_pingpong -g 0 -c {options} -p {port}", port)
    client = scene.client(f"ibv_ud_pingpong -g 0 -c {options} -p {port} {scene.address}")
    scene.ends_well(client, server)
    scene.carried_datagrams(2 * 200)


@in_datagrams
@only_roce
@pytest.mark.reports("overlap")
@pytest.mark.datagrams
def test_udaddy(scene):
    server = scene.start(f"udaddy -b {scene.address} -c 3 -C 20")
    server.wait_until(lambda: "udaddy: starting server" in server.output(), "its first line")
    client = scene.client(f"udaddy -s {scene.address} -c 3 -C 20")
    scene.ends_well(client, server)
    assert "return status 0" in client.output()
    scene.carried_datagrams(2 * 3 * 20)


@in_datagrams
@only_roce
@pytest.mark.reports("overlap", "qp-destroyed")
@pytest.mark.datagrams
def test_mckey(scene):
    receiver = scene.start(f"mckey -m 224.0.9.9 -b {scene.address} -c 2 -C 10")
    receiver.wait_output("joined dgid")
    sender = scene.client(f"mckey -m 224.0.9.9 -b {scene.client_address} -s -c 2 -C 10")
    scene.ends_well(sender, receiver, seconds=programs.SECONDS_MAX)
    scene.carried_datagrams(10)
