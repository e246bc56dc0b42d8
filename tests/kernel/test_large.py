# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""FPDUs that are longer than a segment, each in several pieces of TCP's buffers and in several of these: placed from there,
or, where TCP has no room for a whole one, by way of a buffer."""

import pathlib

import conftest
import consumers
import ends
import pytest

PARAMETER = pathlib.Path("/sys/module/anywarp/parameters/large_fpdus")
SIZE = 1 << 20
WRITES = 50
# Of what goes over the link: an FPDU's head and CRC are one and a half percent of a segment of 1448 bytes.
SHARE_OF_HEADS_MAX = 0.01
# Bytes: the least, the default and the most of a socket's buffer for what it receives.
BUFFERS = {"usual": None, "small": "4096 16384 32768"}

pytestmark = pytest.mark.skipif(conftest.LINK_TYPE != "anywarp", reason="of anywarp alone")


@pytest.fixture(autouse=True)
def large_fpdus(kernel):  # pylint: disable=unused-argument
    before = PARAMETER.read_text(encoding="ascii")
    PARAMETER.write_text("Y", encoding="ascii")
    yield
    PARAMETER.write_text(before, encoding="ascii")


@pytest.fixture(name="link", params=[1500, 9000], ids=lambda mtu: f"mtu{mtu}")
def large_link(open_link, request):
    return open_link("kernel_kernel", mtu=request.param)


def tcp_rmem(end, value=None):
    path = "/proc/sys/net/ipv4/tcp_rmem"
    return ends.run([*end.into, "sh", "-c", f"echo '{value}' >{path}" if value else f"cat {path}"]).strip()


@pytest.fixture(name="buffers", params=BUFFERS.values(), ids=BUFFERS)
def receive_buffers(link, request):
    """Of connections that start afterwards."""
    before = [tcp_rmem(end) for end in (link.server, link.client)]
    for end in (link.server, link.client):
        tcp_rmem(end, request.param or before[0])
    yield
    for end, value in zip((link.server, link.client), before):
        tcp_rmem(end, value)


def test_an_fpdu_is_longer_than_a_segment(open_link, port):
    link = open_link("kernel_kernel", mtu=1500)
    before = ends.octets(link)
    link.perftest(port, "ib_write_bw", f"-s {SIZE} -n {WRITES}")
    assert WRITES * SIZE < ends.octets(link) - before < WRITES * SIZE * (1 + SHARE_OF_HEADS_MAX)


@pytest.mark.parametrize("name", ["ib_write_bw", "ib_send_bw", "ib_read_bw"])
def test_all_operations(buffers, link, port, name):  # pylint: disable=unused-argument
    assert link.perftest(port, name, f"-s {SIZE} -n {WRITES}") == [SIZE]


def test_data_is_whole(buffers, link, port):  # pylint: disable=unused-argument
    """Of all sizes around a segment's, a page's, an FPDU's and TCP's largest packet."""
    for at, size in enumerate((1300, 1448, 4096, 8948, 9100, 63712, 64768, 65535)):
        link.rping(port + at, f"-S {size}", count=5)


def test_data_is_whole_where_packets_are_lost(link, port):
    with consumers.Loss(*((end.into, ends.INTERFACE) for end in (link.server, link.client))) as loss:
        link.rping(port, "-S 65535", count=30)
        assert link.perftest(port + 1, "ib_write_bw", f"-s {SIZE} -n 20") == [SIZE]
        assert loss.lost() > 0
