# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""kill -9 of either end in the middle of traffic: the survivor hears of it and ends by itself, and
the next connection is as good as the first."""

import time

import ends
import pytest

# For ever, compared with the time until the kill.
FOR_EVER = "-R -F -n 4000000 -s"
TRAFFIC = {
    "rping": ("rping -s -S 60000", "rping -c -a {address} -S 60000"),
    **{name: (f"{name} {FOR_EVER} {size}", f"{name} {FOR_EVER} {size} {{address}}")
       for name, size in (("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_send_lat", 4096))},
}
OCTETS_BEFORE = 1 << 16


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


def kill_one(guest, link, port, traffic, victim):
    server_line, client_line = TRAFFIC[traffic]
    server = link.start_server(server_line, port)
    client = link.start_client(client_line, port)
    wait_for_traffic(guest)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    assert survivor.status() is None
    dead.kill()
    survivor.wait_exit(ends.SECONDS_MAX)
    link.rping(port, "-S 1000")


@pytest.mark.parametrize("victim", ["server", "client"])
@pytest.mark.parametrize("traffic", ["rping", "ib_write_bw", "ib_read_bw"])
def test_either_end(guest, link, port, traffic, victim):
    kill_one(guest, link, port, traffic, victim)


def test_the_end_on_siw_while_both_send(guest, link, port):
    """Not the other way about: a receive that siw lost its peer under may stay outstanding."""
    victim = "server" if isinstance(link.server, ends.GuestEnd) else "client"
    kill_one(guest, link, port, "ib_send_lat", victim)
