# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""kill -9 of either end in the middle of traffic: TCP ends the connection, the survivor hears of it
and ends by itself, and the next connection is as good as the first. What siw of itself does not
complete after the loss, our build of it does (flush_late, docs/interop.md): a survivor that hangs all
the same is a fault not known yet, and the report says where each of its threads stands."""

import ends
import program
import pytest

# For ever, compared with the time until the kill.
FOR_EVER = "-R -F -n 4000000 -s"
TRAFFIC = {
    "rping": ("rping -s -S 60000", "rping -c -a {address} -S 60000"),
    **{name: (f"{name} {FOR_EVER} {size}", f"{name} {FOR_EVER} {size} {{address}}")
       for name, size in (("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_lat", 4096))},
}
OCTETS_BEFORE = 1 << 16
# It takes a tenth of a second, or a few on a loaded machine.
SURVIVOR_SECONDS_MAX = 60
ESTABLISHED_STATE = "01"
OBJECTS = ("qp", "cm_id", "mr", "cq", "pd")


def wait_for_traffic(joined, link, client):
    """False where the client was refused and has ended (ends.is_refused_once)."""
    tap = joined.taps[0]
    wanted = joined.octets(tap) + OCTETS_BEFORE
    program.wait_until(lambda: joined.octets(tap) >= wanted or client.status() is not None, "traffic", ends.SECONDS_MAX)
    assert client.status() is None or ends.is_refused_once(link.client, client.output()), link.report()
    return client.status() is None


def wait_for_end_of_tcp(end, port):
    """Tells a loss that the survivor's kernel never heard of from one of which its device or program makes nothing."""
    row = f":{port:04X}( [0-9A-F]+:[0-9A-F]+)? {ESTABLISHED_STATE} "
    program.wait_until(lambda: not end.shell(f"grep -E '{row}' /proc/net/tcp; true"), "end of TCP", SURVIVOR_SECONDS_MAX)


def start_pair(joined, link, port, traffic, victim):
    """The one to be killed, then the survivor, in the middle of traffic, and their port."""
    server_line, client_line = TRAFFIC[traffic]
    for each in range(port, port + ends.ATTEMPTS * ends.PORTS_APART, ends.PORTS_APART):
        server = link.start_server(server_line, each)
        client = link.start_client(client_line, each)
        if wait_for_traffic(joined, link, client):
            break
        server.kill()
    dead, survivor = (server, client) if victim == "server" else (client, server)
    assert survivor.status() is None, link.report()
    return dead, survivor, each


def check_survivor(link, port, survivor):
    survivor.wait_exit(SURVIVOR_SECONDS_MAX)
    for end in link.server, link.client:
        if end.kind == ends.KMOD:
            program.wait_until(lambda: not open_objects(end), "end of all RDMA objects", SURVIVOR_SECONDS_MAX)  # pylint: disable=cell-var-from-loop
    link.rping(port)


def open_objects(end):
    """What the kernel holds for programs. QP 1 and the like belong to ib_core's own clients."""
    said = end.shell("\n".join(f"rdma resource show {kind}" for kind in OBJECTS))
    return [line for line in said.splitlines() if " comm " in line]


@pytest.mark.parametrize("victim", ["server", "client"])
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_either_end(joined, link, port, traffic, victim):
    dead, survivor, port = start_pair(joined, link, port, traffic, victim)
    dead.kill()
    wait_for_end_of_tcp(link.client if victim == "server" else link.server, port)
    check_survivor(link, port, survivor)


def test_what_their_end_posts_after_the_loss(joined, link, theirs, port):
    """It is stopped while its device loses the peer. On siw it never ends without flush_late."""
    victim = "client" if link.server is theirs else "server"
    dead, survivor, port = start_pair(joined, link, port, "ib_send_lat", victim)
    survivor.send_signal("STOP")
    dead.kill()
    wait_for_end_of_tcp(theirs, port)
    survivor.send_signal("CONT")
    check_survivor(link, port, survivor)
