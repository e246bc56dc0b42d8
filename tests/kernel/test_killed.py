# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""kill -9 of either end in the middle of traffic: the survivor hears of it and ends by itself, the kernel keeps
nothing of the dead, and the next connection is as good as the first."""

import os
import signal

import ends
import pytest

# For ever, compared with the time until the kill.
FOR_EVER = "-R -F -n 4000000 -s"
STREAM = "-S 60000 -C 4000000"
TRAFFIC = {
    "rstream": (f"rstream -T a {STREAM}", f"rstream -T a {STREAM} -s {{address}}"),
    "rping": ("rping -s -S 60000", "rping -c -a {address} -S 60000"),
    **{name: (f"{name} {FOR_EVER} {size}", f"{name} {FOR_EVER} {size} {{address}}")
       for name, size in (("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_lat", 4096))},
}


def start_pair(link, port, server_line, client_line):
    """Server and client, in the middle of traffic."""
    server = link.start_server(server_line, port)
    client = link.start_client(client_line, port)
    ends.wait_for_traffic(link)
    assert server.status() is None and client.status() is None, link.report()
    return server, client


def open_objects(kernel):
    """What the kernel holds for programs. QP 1 and the like belong to ib_core's own clients."""
    return {kind: ends.run(["rdma", "resource", "show", kind]).count(" comm ")
            for kind in ("qp", "cm_id", "mr", "cq", "pd")}


def check_kill(kernel, link, port, dead, survivor):
    dead.kill()
    survivor.wait_exit(ends.SECONDS_MAX)
    ends.wait_until(lambda: not any(open_objects(kernel).values()), "end of all RDMA objects")
    link.rping(port)


@pytest.mark.parametrize("victim", ["server", "client"])
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_either_end(kernel, link, port, traffic, victim):
    server, client = start_pair(link, port, *TRAFFIC[traffic])
    dead, survivor = (server, client) if victim == "server" else (client, server)
    check_kill(kernel, link, port, dead, survivor)


@pytest.mark.parametrize("mode", ["", "-T b", "-T b -T a"], ids=["nonblocking", "blocking", "sleeping"])
def test_a_sender_on_our_rsockets(kernel, open_link, port, mode):
    """As -T a in TRAFFIC, but here the receiver is the victim, and the sender is on our librdmacm. rdma-core's may stay for
    ever, on siw as often: where all of its Writes are complete and it waits for credits, the end shows in flushed
    receives alone, and rsend passes over these."""
    link = open_link("kernel_serves_user")
    options = f"{STREAM} {mode}"
    server, client = start_pair(link, port, f"rstream {options}", f"rstream {options} -s {{address}}")
    check_kill(kernel, link, port, server, client)


def test_what_is_posted_after_the_loss(link, port):
    """The survivor is stopped while its device loses the peer, and posts afterwards."""
    server, client = start_pair(link, port, *TRAFFIC["ib_send_lat"])
    os.kill(client.pid, signal.SIGSTOP)
    server.kill()
    rows = f"/proc/{link.client.namespace.holder.pid}/net/tcp"
    ends.wait_until(lambda: not is_established(rows, port), "end of TCP")
    os.kill(client.pid, signal.SIGCONT)
    client.wait_exit(ends.SECONDS_MAX)
    link.rping(port)


def is_established(path, port):
    with open(path, encoding="ascii") as file:
        return any(row.split()[2].endswith(f":{port:04X}") and row.split()[3] == "01" for row in file)
