# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's own programs for rsockets, both ends on our libraries: rstream and riostream, which verify
what they transfer, rcopy, and udpong for datagrams."""

import os
import pathlib
import re
import shlex
import sys

import pytest

import conftest

FAR_LINK = pathlib.Path(__file__).parents[1] / "sockets" / "far_link.py"
sys.path.append(str(FAR_LINK.parent))
import far_link  # noqa: E402

FULL = 1 if not conftest.SANITIZER else 10
MODES = {"nonblocking": "", "blocking": "-T b", "polling": "-T a", "sleeping": "-T b -T a"}
SIZES = [16, 1000, 4096, 65536, 1000000]  # its first message, of 16, is in the same buffer
ROW = r"(?m)^\w+ +[\d.]+[kmg]? +\d+[kmb]? +\d+[kmb]? +[\d.]+[kmg]? +[\d.]+s +[\d.]+ +[\d.]+$"


def stream(start, port, name, options, address="127.0.0.1", server_options=""):
    """One server and one client with the same options; how many measurements the two printed."""
    server = start.server(f"{name} {options} {server_options}", port)
    client = start(f"{name} -s {address} -p {port} {options}")
    assert client.wait_exit() == 0
    assert server.wait_exit() == 0
    texts = client.output() + server.output()
    assert "failed" not in texts
    return len(re.findall(ROW, texts))


def one_size(size):
    return f"-S {size} -C {min(1000, 20000000 // size) // FULL} -I 2 -T v"


@pytest.mark.parametrize("mode", ["blocking", "sleeping"])
def test_usual_run(start, port, mode):
    """What the program does without a choice of size: four sizes for latency, four for bandwidth."""
    if conftest.SANITIZER:
        pytest.skip("takes minutes")
    assert stream(start, port, "rstream", MODES[mode]) == 16


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_stream_is_verified(start, port, size, mode):
    assert stream(start, port, "rstream", f"{one_size(size)} {MODES[mode]}") == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_direct_writes_are_verified(start, port, size, mode):
    assert stream(start, port, "riostream", f"{one_size(size)} {MODES[mode]}") == 2


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("buffers", [2048, 10000, 4000000])
def test_buffer_sizes(start, port, buffers, size):
    assert stream(start, port, "rstream", f"{one_size(size)} -T b -B {buffers}") == 2


@pytest.mark.parametrize("options", ["-i 0", "-i 16", "-i 1000", "-f ip", "-k 10", "-T r"])
def test_other_options(start, port, options):
    assert stream(start, port, "rstream", f"{one_size(1000)} -T b {options}") == 2


def test_over_ipv6(start, port):
    assert stream(start, port, "rstream", f"{one_size(1000)} -T b", "::1", "-b ::") == 2


@pytest.mark.parametrize("persona", ["iwarp", *["roce"] * 5])  # of five some would fail
def test_last_bytes_arrive_where_the_server_ends_behind_them(start, port, persona):
    """The ends are 5 ms from each other: TCP has bytes still to send when the server's program has ended."""
    if conftest.SANITIZER:
        pytest.skip("rstream is another's program")
    options = f"-p {port} -T v -S 65536 -C 20"
    server = f"rstream {options} >&2 & until ss -Hltn sport = {port} | grep -q . ; do : ; done; echo ready; wait $!"
    link = shlex.join([sys.executable, str(FAR_LINK), "5", server, f"rstream -s 10.77.0.1 {options}"])
    far = start(link, prefix=["env", f"ANYWARP_PERSONA={persona}"])
    status = far.wait_exit()
    if status == far_link.CANNOT:
        pytest.skip(far.output())
    assert status == 0, far.output()
    assert "reset" not in far.output()


def test_bound_addresses(start, port):
    server = start.server("rstream -b 127.0.0.1 -T b -S 100 -C 10", port)
    client = start(f"rstream -s 127.0.0.1 -b 127.0.0.2 -p {port} -T b -S 100 -C 10")
    # Both ends of rstream bind the port that they are told.
    assert client.wait_exit() == server.wait_exit() == 0


def test_nobody_listens(start, port):
    client = start(f"rstream -s 127.0.0.1 -p {port} -T b")
    assert client.wait_exit() != 0
    assert "rconnect: Connection refused" in client.output()


def test_nobody_listens_to_who_does_not_wait(start, port):
    client = start(f"rstream -s 127.0.0.1 -p {port}")
    assert client.wait_exit() != 0
    assert "rpoll" in client.output() or "rconnect" in client.output()


def processor_ticks(program):
    with open(f"/proc/{program.pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[11])


@pytest.mark.parametrize("mode", MODES)
def test_killed_client_ends_the_server(start, port, mode):
    options = f"-S 1000 -C 100000 -I 1000 {MODES[mode]}"
    server = start.server(f"rstream {options}", port)
    client = start(f"rstream -s 127.0.0.1 -p {port} {options}")
    client.wait_until(lambda: processor_ticks(client) >= 10, "work")
    client.kill()
    assert server.wait_exit() is not None
    assert "custom" not in server.output()


def copy(start, port, source, target):
    client = start(f"rcopy {source} 127.0.0.1:{target} -p {port}")
    assert client.wait_exit() == 0
    assert re.search(r"\d+ bytes in .* Gb/sec", client.output())
    assert target.read_bytes() == source.read_bytes()


def test_copies_are_whole(start, port, tmp_path):
    """One server, one file after the other."""
    start.server("rcopy", port)
    for size in (1, 4095, 65536, 131073, 30000000 // FULL):
        source = tmp_path / f"source{size}"
        source.write_bytes(os.urandom(size))
        copy(start, port, source, tmp_path / f"target{size}")


def test_copies_at_once_come_one_by_one(start, port, tmp_path):
    start.server("rcopy", port)
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3000000))
    targets = [tmp_path / f"target{i}" for i in range(6)]
    clients = [start(f"rcopy {source} 127.0.0.1:{target} -p {port}") for target in targets]
    for client, target in zip(clients, targets):
        assert client.wait_exit() == 0
        assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_datagrams(start, port, mode):
    """Its server runs for ever; the client tells how many of 1000 arrived. Without -T e: a repeated echo
    has it ask for that one for ever."""
    start(f"udpong {MODES[mode]} -b 127.0.0.1 -p {port}")
    client = start(f"udpong -s 127.0.0.1 -p {port} -S 1000 -C 1000 {MODES[mode]}")
    assert client.wait_exit() == 0
    assert re.search(r"(?m)^custom +1000 +(1k|\d\d+) ", client.output())
