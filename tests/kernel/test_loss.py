# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs over a link that loses packets: behind each, TCP holds segments out of order. With markers and without."""

import pathlib

import conftest
import consumers
import ends
import pytest

PARAMETER = pathlib.Path("/sys/module/anywarp/parameters/markers")
WRITE = 1 << 20

pytestmark = pytest.mark.skipif(conftest.LINK_TYPE != "anywarp", reason="of anywarp alone")


@pytest.fixture(name="markers", params="NY", ids=lambda value: f"markers={value}", autouse=True)
def markers_of_connections(kernel, request):  # pylint: disable=unused-argument
    before = PARAMETER.read_text(encoding="ascii")
    PARAMETER.write_text(request.param, encoding="ascii")
    yield
    PARAMETER.write_text(before, encoding="ascii")


@pytest.fixture(name="link")
def losing_link(open_link):
    link = open_link("kernel_kernel")
    with consumers.Loss(*((end.into, ends.INTERFACE) for end in (link.server, link.client))) as loss:
        yield link
        assert loss.lost() > 0


def test_data_is_whole(link, port):
    link.rping(port, "-S 60000", count=20)


def test_large_writes(link, port):
    assert link.perftest(port, "ib_write_bw", f"-s {WRITE} -n 50") == [WRITE]
