# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests of the kernel module. They run under User Mode Linux (uml.py), where they are root and alone; a
machine of its own would do as well. uml.py hands on the variables: ANYWARP_BUILD, the build of
user space; ANYWARP_LINK, the link type; ANYWARP_MODULES, the directories of anywarp.ko and siw.ko."""

import itertools
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))
sys.dont_write_bytecode = True

import ends  # noqa: E402
import kernel as kernels  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
LINK_TYPE = os.environ.get("ANYWARP_LINK", "anywarp")
# Addresses of a conversation are its namespaces': no port of one test is another's.
PORTS = itertools.count(20000)
MTUS = (1500, 9000)


@pytest.fixture(scope="session")
def kernel():
    """The kernel with the module in it. In the end the module goes, and nothing of it is left."""
    kernel = kernels.Kernel()
    kernel.load(LINK_TYPE)
    yield kernel
    kernel.unload_if_there(LINK_TYPE)
    if leaks := kernel.leaks():
        pytest.fail(f"memory that nothing points to:\n{leaks}", pytrace=False)


@pytest.fixture(autouse=True)
def no_complaint(kernel):
    """A test during which the kernel complains fails, whatever it found itself."""
    kernel.forget_messages()
    yield
    if found := kernel.complaints():
        pytest.fail("the kernel complained:\n" + "\n".join(found), pytrace=False)


@pytest.fixture
def link_type():
    return LINK_TYPE


@pytest.fixture
def of_ours():
    if LINK_TYPE != "anywarp":
        pytest.skip(f"of anywarp, not of {LINK_TYPE}")


@pytest.fixture(scope="module")
def beds(kernel):  # pylint: disable=unused-argument
    """The bed of a pair of ends. It stays until another one is asked for: making one takes a second."""
    current = {}

    def get(kinds):
        if kinds not in current:
            for _, bed in list(current.items()):
                bed.close()
            current.clear()
            current[kinds] = ends.Bed(kinds, LINK_TYPE, BUILD)
        return current[kinds]

    yield get
    for bed in current.values():
        bed.close()


@pytest.fixture
def open_link(request, beds):
    """Makes the Link of one test, whose programs end with it."""
    link = None

    def make(pair, mtu=MTUS[0]):
        nonlocal link
        link = ends.Link(*beds(ends.PAIRS[pair]).at_mtu(mtu), [])
        return link

    request.node.told = lambda: link.report() if link else ""
    yield make
    for started in link.started if link else []:
        started.close()


@pytest.fixture(params=ends.PAIRS, scope="module")
def pair(request):
    """Each of the ways in which the module meets itself and user space; the tests of one come together."""
    return request.param


@pytest.fixture
def link(pair, open_link):
    return open_link(pair)


@pytest.fixture(params=MTUS, ids=lambda mtu: f"mtu{mtu}")
def link_of_mtu(request, pair, open_link):
    return open_link(pair, request.param)


@pytest.fixture
def port():
    return next(PORTS)
