# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's perftest and qperf. These prove that the programs work and finish in seconds with both
ends spinning on few cores; how fast they are is never judged here."""

import re

import pytest

import conftest
from perftest import table

SLOW = bool(conftest.SANITIZER)
SECONDS_MAX = conftest.program.SECONDS_MAX


def perftest(start, port, line, bed=None):
    """Runs server and client; returns the client's table."""
    prefixes = (bed.server_prefix, bed.client_prefix) if bed else ((), ())
    server = start.server(f"{line} -R -F", port, prefix=prefixes[0])
    client = start(f"{line} -R -F -p {port} {bed.address if bed else '127.0.0.1'}",
                   prefix=prefixes[1])
    assert client.wait_exit(SECONDS_MAX) == 0
    assert server.wait_exit(SECONDS_MAX) == 0
    return table(client.output())


def assert_figures(rows, sizes):
    assert sorted(rows) == sorted(sizes)
    assert all(max(figures[1:]) > 0 for figures in rows.values())


@pytest.mark.parametrize("size", [64, 65536])
@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw",
                                     "ib_write_lat", "ib_read_lat", "ib_send_lat"])
def test_program(start, port, program, size):
    count = 200 if SLOW else 1000
    rows = perftest(start, port, f"{program} -s {size} -n {count}")
    assert_figures(rows, [size])
    assert rows[size][0] == count


@pytest.mark.parametrize("program", ["ib_write_lat -s 4", "ib_send_lat -s 4",
                                     "ib_write_bw -s 65536"])
def test_defaults_take_seconds(start, port, program):
    perftest(start, port, program)


@pytest.mark.parametrize("program", ["ib_send_lat", "ib_read_bw", "ib_read_lat"])
def test_events_instead_of_polling(start, port, program):
    """Without ib_send_bw: on iWARP its credits are Writes, which are no event, and so it may sleep
    for ever with its last completion taken."""
    assert_figures(perftest(start, port, f"{program} -e -s 4096 -n 500"), [4096])


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bidirectional(start, port, program):
    assert_figures(perftest(start, port, f"{program} -b -s 65536 -n 500"), [65536])


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_four_qps(start, port, program):
    assert_figures(perftest(start, port, f"{program} -q 4 -s 8192 -n 500"), [8192])


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat"])
def test_for_a_duration(start, port, program):
    assert_figures(perftest(start, port, f"{program} -D 1 -s 16384"), [16384])


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_every_size(start, port, program):
    rows = perftest(start, port, f"{program} -a -n 10")
    assert_figures(rows, [2**power for power in range(1, 24)])


@pytest.mark.parametrize("options", ["-I 64 -s 64", "-I 0 -s 64", "-Q 1 -s 64", "-t 2 -s 65536",
                                     "-N -s 1", "-s 1000003"])
def test_write_options(start, port, options):
    perftest(start, port, f"ib_write_bw {options} -n 200")


def test_two_servers_at_once(start):
    import program
    ports = [program.free_port() for _ in range(2)]
    servers = [start.server("ib_write_bw -s 4096 -n 2000 -R -F", port) for port in ports]
    clients = [start(f"ib_write_bw -s 4096 -n 2000 -R -F -p {port} 127.0.0.1") for port in ports]
    assert [end.wait_exit() for end in clients + servers] == [0] * 4


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_send_lat"])
def test_between_namespaces(start, port, veth, program):
    assert_figures(perftest(start, port, f"{program} -s 65536 -n 300", veth), [65536])


@pytest.mark.parametrize("kind", ["FETCH_AND_ADD", "CMP_AND_SWAP"])
@pytest.mark.parametrize("program", ["ib_atomic_bw", "ib_atomic_lat"])
def test_atomics(start, port, program, kind):
    rows = perftest(start, port, f"{program} -A {kind} -n 200")
    assert_figures(rows, [8])


def test_atomics_options(start, port):
    """More under way at once than the peers agreed on, and over several QPs."""
    assert_figures(perftest(start, port, "ib_atomic_bw -n 200 -o 16 -t 128"), [8])
    assert_figures(perftest(start, port, "ib_atomic_bw -n 200 -o 1 -q 4"), [8])


@pytest.mark.parametrize("off", ["server", "client"])
def test_atomics_where_one_end_has_them_off(start, port, off):
    """The post fails, the reason is told, and what needs no extension goes on."""
    prefixes = {"server": (), "client": ()}
    prefixes[off] = ("env", "ANYWARP_MPA=extensions=off")
    server = start.server("ib_atomic_lat -n 10 -R -F", port, prefix=prefixes["server"])
    client = start(f"ib_atomic_lat -n 10 -R -F -p {port} 127.0.0.1", prefix=prefixes["client"])
    assert client.wait_exit(SECONDS_MAX) != 0
    server.wait_exit(SECONDS_MAX)
    said = "immediate data and atomics refused: the peer did not agree"
    assert client.output().count(said) == 1
    assert "extensions=on in ANYWARP_MPA" in client.output()


# The Write tests need immediate data; those that begin with ver_ verify each result.
@pytest.mark.parametrize("test", ["rc_lat", "rc_bw", "rc_rdma_read_lat", "rc_rdma_read_bw",
                                  "rc_rdma_write_lat", "rc_rdma_write_bw",
                                  "rc_rdma_write_poll_lat", "rc_compare_swap_mr",
                                  "rc_fetch_add_mr", "ver_rc_compare_swap",
                                  "ver_rc_fetch_add"])
def test_qperf(start, port, test):
    server = start(f"qperf -lp {port}")
    server.wait_listening(port)
    client = start(f"qperf 127.0.0.1 -lp {port} -cm 1 -t 1 {test}")
    assert client.wait_exit(SECONDS_MAX) == 0
    assert re.search(r"(latency|bw|msg_rate) += +[\d.]+", client.output())


def test_without_rdma_cm_the_remedy_is_told(start, port):
    server = start.server("ib_write_lat -s 4", port)
    client = start(f"ib_write_lat -s 4 -p {port} 127.0.0.1")
    assert client.wait_exit() != 0
    assert server.wait_exit() != 0
    assert "connected by rdma_cm alone (perftest: add -R" in client.output()
