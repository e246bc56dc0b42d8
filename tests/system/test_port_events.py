# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The port's state and its events while interfaces and addresses come and go, in a namespace that the test makes."""

import os
import pathlib
import re
import signal
import subprocess

import beds
import program
import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
EVENTS = str(BUILD / "tests" / "port_events")
ROCE = ("env", "ANYWARP_PERSONA=roce")
GROUPS = "00000111"  # of links and addresses: what the library listens to


@pytest.fixture
def link():
    """A namespace with loopback and e0, whose carrier is that e1 is up."""
    try:
        made = beds.Namespace()
    except beds.NotAllowed as error:
        pytest.skip(f"no network namespaces here: {error}")
    for line in ("link set lo up", "link add e0 type veth peer name e1", "link set e0 addrgenmode none",
                 "link set e1 addrgenmode none", "addr add 192.0.2.1/24 dev e0", "link set e1 up", "link set e0 up"):
        made.ip(line)
    yield made
    made.close()


def netlink(link):
    """The fields of the sockets in the namespace that listen to links and addresses."""
    shown = subprocess.run([*link.into, "cat", "/proc/net/netlink"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in shown.splitlines()]
    return [row for row in rows if row[3] == GROUPS]


def begin(start, link, prefix=ROCE):
    started = start(EVENTS, prefix=(*link.into, *prefix))
    started.wait_output("ready active phys 5")
    return started


def told(started, *lines):
    """Waits until each context has been told so."""
    for context in range(2):
        for line in lines:
            started.wait_output(f"context {context} {line}")


def test_the_carrier(start, link):
    started = begin(start, link)
    link.ip("link set e1 down")
    told(started, "PORT_ERR down phys 3")
    link.ip("link set e1 up")
    told(started, "PORT_ACTIVE active phys 5")
    link.ip("link set e1 down")
    started.wait_until(lambda: started.output().count("PORT_ERR") == 4, "a second PORT_ERR for each context")


def test_the_interface_and_its_addresses(start, link):
    """Addresses of an interface that is down are no GIDs."""
    started = begin(start, link)
    assert "gids 3" in started.output()
    link.ip("addr add 192.0.2.9/24 dev e0")
    told(started, "GID_CHANGE active phys 5 mtu 1024 gids 4")
    link.ip("link set e0 mtu 9000")
    link.ip("addr del 192.0.2.9/24 dev e0")
    told(started, "GID_CHANGE active phys 5 mtu 4096 gids 3")
    link.ip("link set e0 down")
    # The kernel tells of the address and of the link one after the other.
    told(started, "PORT_ERR down phys 3", r"GID_CHANGE (active phys 5|down phys 3) mtu 4096 gids 2")
    link.ip("link set e0 up")
    told(started, "PORT_ACTIVE active phys 5", r"GID_CHANGE (active phys 5|down phys 3) mtu 4096 gids 3")
    link.ip("link del e0")
    started.wait_until(lambda: started.output().count("PORT_ERR") == 4, "a second PORT_ERR for each context")


def test_iwarp_has_no_gid_change(start, link):
    """As siw: the port's events alone."""
    started = begin(start, link, prefix=())
    link.ip("addr add 192.0.2.9/24 dev e0")
    link.ip("link set e1 down")
    told(started, "PORT_ERR down phys 3")
    assert "GID_CHANGE" not in started.output()


def test_loopback_alone_is_a_port(start, link):
    link.ip("link del e0")
    started = begin(start, link)
    link.ip("link set lo down")
    told(started, "PORT_ERR down phys 3", r"GID_CHANGE \w+ phys \d mtu \d+ gids 0")


def test_a_thread_that_waits(start, link):
    """It begins to listen with its first call, and not before."""
    watch = start("ibv_asyncwatch", prefix=(*link.into, *ROCE))
    # The other one is read when the GID table is asked for.
    watch.wait_until(lambda: len(netlink(link)) == 2, "a socket for news of links")
    link.ip("link set e1 down")
    watch.wait_output(r"PORT_ERR.*port 1")
    link.ip("link set e1 up")
    watch.wait_output(r"PORT_ACTIVE.*port 1")
    link.ip("addr add 192.0.2.9/24 dev e0")
    watch.wait_output(r"GID_CHANGE.*port 1")


def test_programs_that_take_no_events_do_not_listen(start, link):
    devinfo = start("ibv_rc_pingpong -g 0", prefix=(*link.into, *ROCE))
    devinfo.wait_listening(18515)
    rows = netlink(link)
    # One that is never watched, to know when the GID table is to be read again.
    assert len(rows) == 1
    threads = os.listdir(f"/proc/{devinfo.pid}/task")
    assert len(threads) <= 2 + ("thread" in os.environ.get("ANYWARP_SAN", ""))  # the sanitizer has one


def is_stopped(pid):
    return program.read_stat(f"/proc/{pid}/stat")[0] == "T"


def test_news_that_the_socket_drops_are_not_lost(start, link):
    """A program that is stopped meanwhile learns how things are."""
    started = begin(start, link)
    os.kill(started.pid, signal.SIGSTOP)
    started.wait_until(lambda: is_stopped(started.pid), "a stopped program")
    flaps = "addr add 192.0.2.9/24 dev e0\naddr del 192.0.2.9/24 dev e0\n" * 2000 + "link set e1 down\n"
    subprocess.run([*link.into, "ip", "-batch", "-"], input=flaps, text=True, check=True)
    assert any(int(row[8]) > 0 for row in netlink(link)), "the socket has taken all of it"
    os.kill(started.pid, signal.SIGCONT)
    told(started, "PORT_ERR down phys 3")
    link.ip("link set e1 up")
    told(started, "PORT_ACTIVE active phys 5")
    assert len(re.findall("PORT_ERR", started.output())) == 2
