# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two peers for each run of pytest: ours and theirs. ANYWARP_PAIR says what they are (ends.py): user_siw, user_kmod,
kmod_siw or kmod_kmod. ctest sets it, ANYWARP_BUILD and ANYWARP_KERNEL, the configuration of the guests' kernel."""

import contextlib
import itertools
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tools/lib", "tests/system", "tests/kernel"):
    sys.path.append(str(ROOT / folder))
sys.dont_write_bytecode = True

import ends  # noqa: E402
import guest as guests  # noqa: E402
import network  # noqa: E402
import program  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

if not {"ANYWARP_BUILD", "ANYWARP_PAIR"} <= set(os.environ):
    sys.exit("ANYWARP_BUILD and ANYWARP_PAIR are not set: use ./dev test --interop")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
OURS, THEIRS = os.environ["ANYWARP_PAIR"].split("_")
MTUS = (1500, network.MTU_MAX)
PORTS = itertools.count(20000)


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(ours, theirs): a test of these peers alone")


def pytest_collection_modifyitems(items):
    """A test of other peers is none of this run's."""
    peers = {"ours": OURS, "theirs": THEIRS}
    items[:] = [item for item in items
                if all(peers.items() >= marker.kwargs.items() for marker in item.iter_markers("needs"))]


@pytest.fixture(scope="session")
def joined():
    with contextlib.closing(network.Network()) as made:
        yield made


@contextlib.contextmanager
def booted_end(joined, number, kind):
    """Nothing is left of our module once it is removed."""
    with guests.Guest(joined, number, ends.LINK_TYPES[kind]) as guest:
        yield (ends.KmodEnd if kind == ends.KMOD else ends.SiwEnd)(guest)
        if kind == ends.KMOD and (leaks := guest.leaks()):
            pytest.fail(f"memory that nothing points to:\n{leaks}", pytrace=False)


@pytest.fixture(scope="session")
def theirs_of_session(joined):
    with booted_end(joined, 1, THEIRS) as end:
        yield end


@pytest.fixture(scope="session")
def ours_of_session(joined, theirs_of_session):  # pylint: disable=unused-argument
    if OURS == ends.USER:
        yield ends.HostEnd(joined, BUILD)
    else:
        with booted_end(joined, 2, OURS) as end:
            yield end


@pytest.fixture
def theirs(theirs_of_session):
    yield from watched(theirs_of_session)


@pytest.fixture
def ours(ours_of_session):
    yield from watched(ours_of_session)


def watched(end):
    """Of what a test asked an end to ask for nothing is left, and a test during which our module's kernel complained
    fails."""
    yield end
    end.reset()
    if end.kind == ends.KMOD and (found := end.guest.complaints()):
        pytest.fail("the kernel complained:\n" + "\n".join(found), pytrace=False)


@pytest.fixture(params=["ours_initiate", "theirs_initiate"])
def link(request, ours, theirs):
    ends_of = (theirs, ours) if request.param == "ours_initiate" else (ours, theirs)
    yield from open_link(request, *ends_of)


@pytest.fixture
def theirs_initiate(request, ours, theirs):
    yield from open_link(request, ours, theirs)


@pytest.fixture
def ours_initiate(request, ours, theirs):
    yield from open_link(request, theirs, ours)


def open_link(request, server, client):
    link = ends.Link(server, client, [])
    request.node.told = lambda: tell(link)
    yield link
    for started in link.started:
        started.close()


def tell(link):
    """The programs come last, for of a long report the end is shown."""
    texts = []
    try:
        texts += [end.guest.state() for end in (link.server, link.client) if end.kind != ends.USER]
        texts.append(link.report())
    except program.Trouble as trouble:
        texts.append(str(trouble))
    return "\n".join(texts)


@pytest.fixture
def peer_to_peer(theirs):
    """For programs whose server may post first. A responder of MPA may not (RFC 5044 7.1.2), unless the initiator sent
    something before: siw does when it asks for the peer-to-peer model. Otherwise siw as initiator takes what comes right
    behind the Reply for a part of it, and ends the connection (EINVAL)."""
    if theirs.kind == ends.SIW:
        theirs.ask_for(p2p=True)


@pytest.fixture
def port():
    return next(PORTS)


@pytest.fixture(params=MTUS, ids=lambda mtu: f"mtu{mtu}", scope="module")
def mtu(request, joined, ours_of_session, theirs_of_session):
    """The tests of one come together."""
    both = ours_of_session, theirs_of_session
    set_mtu(joined, both, request.param)
    yield request.param
    set_mtu(joined, both, network.MTU_MAX)


def set_mtu(joined, both, mtu):
    joined.set_mtu(mtu)
    for end in both:
        if end.kind != ends.USER:
            end.guest.set_mtu(mtu)
