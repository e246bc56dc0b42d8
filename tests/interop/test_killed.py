# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""kill -9 of either end in the middle of traffic: TCP ends the connection, the survivor hears of it
and ends by itself, and the next connection is as good as the first. What siw of itself does not
complete after the loss, our build of it does (flush_late, docs/interop.md): a survivor that hangs all
the same is a fault not known yet, and the report says where each of its threads stands."""

import time

import ends
import guest as guests
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


def tap_octets(guest):
    """What went over the tap so far, both ways."""
    with open(f"/proc/{guest.network.holder.pid}/net/dev", encoding="ascii") as file:
        numbers = next(row.split(":")[1].split() for row in file if "tap0:" in row)
    return int(numbers[0]) + int(numbers[8])


def wait_for_traffic(guest):
    wanted = tap_octets(guest) + OCTETS_BEFORE
    deadline = time.monotonic() + ends.SECONDS_MAX
    while tap_octets(guest) < wanted:
        assert time.monotonic() < deadline, "no traffic"
        time.sleep(0.01)


def wait_for_end_of_tcp(guest, port):
    """Tells a loss that the guest never heard of from one that siw or its program make nothing of."""
    row = f":{port:04X}( [0-9A-F]+:[0-9A-F]+)? {ESTABLISHED_STATE} "
    for _ in guests.polls(SURVIVOR_SECONDS_MAX):
        if not guest.exec(f"grep -E '{row}' /proc/net/tcp; true"):
            return
    pytest.fail(f"the guest's TCP connection outlives its peer by {SURVIVOR_SECONDS_MAX} s")


def start_pair(guest, link, port, traffic, victim):
    """The one to be killed, then the survivor, in the middle of traffic."""
    server_line, client_line = TRAFFIC[traffic]
    server = link.start_server(server_line, port)
    client = link.start_client(client_line, port)
    wait_for_traffic(guest)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    assert survivor.status() is None
    return dead, survivor


def check_survivor(link, port, survivor):
    survivor.wait_exit(SURVIVOR_SECONDS_MAX)
    link.rping(port, "-S 1000")


@pytest.mark.parametrize("victim", ["server", "client"])
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_either_end(guest, link, port, traffic, victim):
    dead, survivor = start_pair(guest, link, port, traffic, victim)
    dead.kill()
    wait_for_end_of_tcp(guest, port)
    check_survivor(link, port, survivor)


def test_what_the_end_on_siw_posts_after_the_loss(guest, link, port):
    """It is stopped while siw loses the peer. Without flush_late it never ends."""
    victim = "server" if isinstance(link.server, ends.HostEnd) else "client"
    dead, survivor = start_pair(guest, link, port, "ib_send_lat", victim)
    survivor.signal("STOP")
    dead.kill()
    wait_for_end_of_tcp(guest, port)
    survivor.signal("CONT")
    check_survivor(link, port, survivor)
