# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One guest for each run of pytest. ctest sets ANYWARP_BUILD and ANYWARP_GUEST, the folder that
build-guest filled; ./dev test --interop does both."""

import itertools
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tools/lib", "tests/system"):
    sys.path.insert(0, str(ROOT / folder))
sys.dont_write_bytecode = True

import ends  # noqa: E402
import guest as guests  # noqa: E402
import program  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

if not {"ANYWARP_BUILD", "ANYWARP_GUEST"} <= set(os.environ):
    sys.exit("ANYWARP_BUILD and ANYWARP_GUEST are not set: use ./dev test --interop")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
# What Debian's siw has; a test that changed one leaves the next as it was.
SIW_DEFAULTS = {"mpa_crc_required": 0, "mpa_crc_strict": 0, "mpa_version": 2, "peer_to_peer": 0,
                "rtr_type": 0x00C0, "look_again": 1, "ready_first": 1, "flush_late": 1}
SIW_INITIATES, ANYWARP_INITIATES = "siw_initiates", "anywarp_initiates"
PORTS = itertools.count(20000)


@pytest.fixture(scope="session")
def guest():
    with boot() as booted:
        yield booted


def boot():
    return guests.Guest(os.environ["ANYWARP_GUEST"])


@pytest.fixture
def siw(guest):
    """Sets siw's module parameters for one test."""
    guest.siw(**SIW_DEFAULTS)
    yield guest.siw
    guest.siw(**SIW_DEFAULTS)


@pytest.fixture
def host(guest):
    return ends.HostEnd(guest, BUILD)


@pytest.fixture(params=[SIW_INITIATES, ANYWARP_INITIATES])
def link(request, guest, host):
    yield from open_link(request, guest, host, request.param)


@pytest.fixture
def siw_initiates(request, guest, host):
    yield from open_link(request, guest, host, SIW_INITIATES)


@pytest.fixture
def anywarp_initiates(request, guest, host):
    yield from open_link(request, guest, host, ANYWARP_INITIATES)


def open_link(request, guest, host, direction):
    both = (host, ends.GuestEnd(guest))
    server, client = both if direction == SIW_INITIATES else reversed(both)
    link = ends.Link(server, client, [])
    request.node.told = lambda: tell(guest, link)
    yield link
    for started in link.started:
        started.close()


def tell(guest, link):
    """The programs come last, for of a long report the end is shown."""
    texts = []
    try:
        texts.append(guest.state())
        texts += [started.report() for started in link.started]
    except program.Trouble as trouble:
        texts.append(str(trouble))
    return "\n".join(texts)


@pytest.fixture
def port():
    return next(PORTS)


@pytest.fixture(params=[1500, 9000], ids=lambda mtu: f"mtu{mtu}")
def mtu(request, guest):
    guest.set_mtu(request.param)
    yield request.param
    guest.set_mtu(guests.MTU_MAX)
