# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's perftest and qperf. These prove that the programs work; how fast they are is not judged."""

import re

import pytest
from perftest import table

with_cm = pytest.mark.program("perftest with -R")
without_cm = pytest.mark.program("perftest without -R")
without_cm_uc = pytest.mark.program("perftest without -R, UC")
without_cm_ud = pytest.mark.program("perftest without -R, UD")
without_cm_xrc = pytest.mark.program("perftest without -R, XRC")
only_roce = pytest.mark.personas("roce")
by_lid = pytest.mark.fails_between_hosts("qperf tells its peer a LID and no GID, and without a GID a path leads to this host alone")

LINES = ["ib_write_bw -s 65536 -n 500", "ib_read_bw -s 65536 -n 500", "ib_send_bw -s 65536 -n 500",
         "ib_write_lat -s 8 -n 500", "ib_read_lat -s 8 -n 500", "ib_send_lat -s 8 -n 500",
         "ib_atomic_bw -n 200", "ib_atomic_lat -n 200",
         "ib_write_bw -q 4 -n 200", "ib_send_bw -q 4 -n 200", "ib_read_bw -q 4 -n 200",
         "ib_send_lat -e -n 200", "ib_read_bw -e -n 200",
         "ib_write_bw -b -n 200", "ib_send_bw -b -n 200", "ib_read_bw -b -n 200",
         "ib_write_bw -a -n 10", "ib_read_bw -a -n 10", "ib_send_bw -a -n 10",
         "ib_send_bw -r 32 --use-srq -n 200", "ib_write_bw -D 1"]


def perftest(scene, line):
    port = scene.port()
    server = scene.server(f"{line} -F -p {port}", port)
    client = scene.client(f"{line} -F -p {port} {scene.address}")
    scene.ends_well(client, server)
    return table(client.output())


def wanted_sizes(line):
    if " -a" in line:
        return {2**power for power in range(1, 24)}
    size = re.search(r"-s (\d+)", line)
    return {int(size.group(1))} if size else None


def judge(line, rows):
    sizes = wanted_sizes(line)
    assert rows and (sizes is None or set(rows) == sizes)
    assert all(max(figures[1:]) > 0 for figures in rows.values())
    qps = int((re.search(r"-q (\d+)", line) or [0, 1])[1])
    count = re.search(r"-n (\d+)", line)
    if count and " -b" not in line:
        assert all(figures[0] == int(count.group(1)) * qps for figures in rows.values())
    return sum(size * figures[0] for size, figures in rows.items()) if "_bw" in line else 0


@with_cm
@pytest.mark.parametrize("line", LINES)
@pytest.mark.reports("source-changed", "sink-written", "overlap", "wakeup-lost", "leak")
def test_with_rdma_cm(scene, line):
    octets = judge(line, perftest(scene, f"{line} -R"))
    scene.carried(octets=octets)


@without_cm
@only_roce
@pytest.mark.parametrize("line", LINES)
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_without_rdma_cm(scene, line):
    octets = judge(line, perftest(scene, line))
    scene.carried(octets=octets)


@without_cm_uc
@only_roce
@pytest.mark.parametrize("line", [
    "ib_send_lat -c UC -s 8 -n 500", "ib_send_bw -c UC -s 65536 -n 500", "ib_send_bw -c UC -s 64 -n 5000",
    "ib_send_bw -c UC -b -n 200", "ib_send_bw -c UC -q 4 -n 200", "ib_send_bw -c UC -a -n 10",
    "ib_write_lat -c UC -s 8 -n 500", "ib_write_bw -c UC -s 65536 -n 500", "ib_write_bw -c UC -b -n 200",
    "ib_write_bw -c UC -a -n 10", "ib_send_lat -c UC -e -n 200"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_unreliable(scene, line):
    """Not a message is lost: the counts are those of a reliable connection."""
    octets = judge(line, perftest(scene, line))
    scene.carried(octets=octets)


@without_cm_ud
@only_roce
@pytest.mark.parametrize("line", ["ib_send_lat -c UD -s 64 -n 200", "ib_send_bw -c UD -s 1024 -n 200"])
@pytest.mark.reports("overlap", "leak")
@pytest.mark.datagrams
def test_datagrams(scene, line):
    judge(line, perftest(scene, line))
    scene.carried_datagrams(200)


@without_cm_xrc
@only_roce
@pytest.mark.parametrize("line", ["ib_send_bw -c XRC -s 65536 -n 500", "ib_send_lat -c XRC -n 200", "ib_send_lat -c XRC -e -n 1000", "ib_write_bw -c XRC -n 200",
                                  "ib_write_lat -c XRC -n 200", "ib_read_bw -c XRC -n 200", "ib_atomic_bw -c XRC -n 200",
                                  "ib_send_bw -c XRC -q 4 -n 200"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_extended_connections(scene, line):
    octets = judge(line, perftest(scene, line))
    scene.carried(octets=octets)


@pytest.mark.program("qperf -cm 1")
@pytest.mark.parametrize("test", ["rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw",
                                  "rc_rdma_write_lat", "rc_rdma_write_bw", "ver_rc_compare_swap",
                                  "ver_rc_fetch_add"])
@pytest.mark.reports("overlap", "mr-deregistered", "wakeup-lost", "leak")
def test_qperf_with_rdma_cm(scene, test):
    qperf(scene, f"-cm 1 {test}")
    scene.carried()


@pytest.mark.program("qperf")
@only_roce
@by_lid
@pytest.mark.parametrize("test", ["rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw",
                                  "rc_rdma_write_lat", "rc_rdma_write_bw", "ver_rc_compare_swap",
                                  "ver_rc_fetch_add"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_qperf(scene, test):
    """It exchanges LID and QPN alone."""
    qperf(scene, test)
    scene.carried()


@pytest.mark.program("qperf, UD")
@only_roce
@by_lid
@pytest.mark.parametrize("test", ["ud_lat", "-m 1K ud_bw", "-m 1K ud_bi_bw"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
@pytest.mark.datagrams
def test_qperf_datagrams(scene, test):
    """Without -m the bandwidth tests send 2 KiB, whatever the MTU is: as on an adapter, whose active MTU
    is 1024 where the Ethernet's is 1500."""
    qperf(scene, test)
    scene.carried_datagrams(10)


@pytest.mark.program("qperf, UD")
@only_roce
@by_lid
@pytest.mark.parametrize("test", ["ud_bw", "ud_bi_bw"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
@pytest.mark.datagrams
def test_qperf_datagrams_in_jumbo_frames(scene, test):
    with scene.jumbo_frames():
        qperf(scene, test)
    scene.carried_datagrams(10)


@pytest.mark.program("qperf, UC")
@only_roce
@by_lid
@pytest.mark.parametrize("test", ["uc_lat", "uc_bw", "uc_bi_bw", "uc_rdma_write_lat", "uc_rdma_write_bw"])
@pytest.mark.reports("overlap", "qp-destroyed", "wakeup-lost", "leak")
def test_qperf_unreliable(scene, test):
    qperf(scene, test)
    scene.carried()


def qperf(scene, test):
    """Each figure that it prints is told, and none is zero."""
    port = scene.port()
    scene.server(f"qperf -lp {port}", port)
    printed = scene.run(f"qperf {scene.address} -lp {port} -t 1 {test}", far=True)
    figures = re.findall(r"(?m)^ +(\w+) += +([\d.]+)", printed)
    assert figures and all(float(figure) > 0 for _, figure in figures), printed
