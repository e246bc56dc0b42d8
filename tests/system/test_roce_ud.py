# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""UD in the roce persona under Debian's programs: rdma-core's ibv_ud_pingpong, udaddy and mckey, and
perftest, on one host and between two."""

import re

import program
import pytest
from perftest import table
from test_perftest import assert_figures

SECONDS_MAX = program.SECONDS_MAX
ROCE = ("env", "ANYWARP_PERSONA=roce")
COUNT = 100
UDADDY_PORT = 7174


def is_bound(pid, port):
    """Whether a UDP socket has the port, in the network namespace of the process."""
    rows = []
    for name in ("udp", "udp6"):
        with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
            rows += [line.split() for line in file.readlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") for row in rows)


def both_end_well(server, client):
    assert client.wait_exit(SECONDS_MAX) == 0
    assert server.wait_exit(SECONDS_MAX) == 0


def gid_index(start, gid):
    """Of the table that ibv_devinfo shows."""
    show = start("ibv_devinfo -v", prefix=ROCE)
    assert show.wait_exit() == 0
    return int(re.search(rf"GID\[ *(\d+)\]:\s+{re.escape(gid)}, RoCE v2", show.output())[1])


def run_pairs(start, lines, bed=None):
    """Runs a server and a client of each line, all at once; returns what the clients printed."""
    prefixes = (bed.server_prefix, bed.client_prefix) if bed else ((), ())
    pairs = []
    for line in lines:
        port = program.free_port()
        server = start.server(line, port, prefix=(*prefixes[0], *ROCE))
        pairs.append((server, start(f"{line} -p {port} {bed.address if bed else '127.0.0.1'}",
                                    prefix=(*prefixes[1], *ROCE))))
    for server, client in pairs:
        both_end_well(server, client)
    return [client.output() for _, client in pairs]


def test_pingpong(start):
    gids = ["::ffff:127.0.0.1", "::1"]
    ways = ["-e"] + [f"-g {gid_index(start, gid)}" for gid in gids]
    outputs = run_pairs(start, [f"ibv_ud_pingpong {way} -n {COUNT}" for way in ways])
    for output, address in zip(outputs, ["LID 0x0000", *(f"GID {gid}" for gid in gids)]):
        assert f"{COUNT} iters in " in output and "anywarp[" not in output
        assert address in output


def test_a_lid_leads_to_no_other_host(start, veth1500):
    """The end that sends first says so; no datagram comes, so neither ends by itself."""
    port, line = program.free_port(), f"ibv_ud_pingpong -n {COUNT}"
    server = start.server(line, port, prefix=(*veth1500.server_prefix, *ROCE))
    client = start(f"{line} -p {port} {veth1500.address}", prefix=(*veth1500.client_prefix, *ROCE))
    client.wait_output("a path without GRH leads to this host alone")
    client.kill()
    server.kill()


def test_perftest(start):
    outputs = run_pairs(start, ["ib_send_lat -c UD -F -n 200 -s 64",
                                "ib_send_bw -c UD -F -n 200 -s 1024 -t 8 -r 512"])
    for output, size in zip(outputs, [64, 1024]):
        assert_figures(table(output), [size])


def test_between_two_hosts(start, veth1500):
    output, = run_pairs(start, [f"ibv_ud_pingpong -g 0 -n {COUNT}"], veth1500)
    assert f"GID ::ffff:{veth1500.address}" in output


@pytest.mark.parametrize("family", [4, 6])
def test_udaddy(start, veth1500, family):
    """Its port is fixed, so it has a network of its own."""
    address = veth1500.address if family == 4 else veth1500.address6
    options = f"-c 2 -C {COUNT} -S 500"
    server = start(f"udaddy -b {address} {options}", prefix=(*veth1500.server_prefix, *ROCE))
    server.wait_until(lambda: is_bound(server.pid, UDADDY_PORT), "socket of the service")
    client = start(f"udaddy -s {address} {options}", prefix=(*veth1500.client_prefix, *ROCE))
    both_end_well(server, client)
    for end in (server, client):
        assert "return status 0" in end.output()


def test_udaddy_without_a_server(start, veth1500):
    client = start(f"udaddy -s {veth1500.address}", prefix=(*veth1500.client_prefix, *ROCE))
    client.wait_exit(SECONDS_MAX)
    assert "RDMA_CM_EVENT_UNREACHABLE" in client.output()


def test_mckey(start, veth1500):
    """Its sender waits for seconds, so both families go at once."""
    members, senders = [], []
    for group, ends in (("239.1.2.3", ("192.0.2.1", "192.0.2.2")),
                        ("ff15::7", ("fd00:aa::1", "fd00:aa::2"))):
        line = f"mckey -m {group} -C {COUNT}"
        members += [start(f"{line} -b {ends[0]}", prefix=(*veth1500.server_prefix, *ROCE))
                    for _ in range(2)]
        senders.append(f"{line} -b {ends[1]} -s")
    for member in members:
        member.wait_output("receiving data transfers")
    for sender in [start(line, prefix=(*veth1500.client_prefix, *ROCE)) for line in senders]:
        assert sender.wait_exit(SECONDS_MAX) == 0
    for member in members:
        assert member.wait_exit(SECONDS_MAX) == 0
        assert "return status 0" in member.output()
