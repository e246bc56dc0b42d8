# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The module under TLS: a tlshd in each of two network namespaces, certificates of a small CA, all that goes over the wire
looked at. Nothing goes on where TLS does not, and plain is never spoken instead."""

import pathlib
import struct
import subprocess
import sys

import beds
import conftest
import ends
import pytest
import tlshd

sys.path.insert(0, str(conftest.ROOT / "tests" / "system"))
import certificates  # noqa: E402

pytestmark = [
    pytest.mark.skipif(conftest.LINK_TYPE != "anywarp", reason="of anywarp alone"),
    pytest.mark.skipif(not pathlib.Path(tlshd.TLSHD).is_file(), reason="no tlshd: ANYWARP_TLSHD"),
]

MPA_KEY = b"MPA ID Re"  # of the Request and the Reply
PING = b"rdma-ping-"
DATA_RECORD = b"\x17\x03\x03"
# RFC 5044 7.1.1: no markers, no CRC, revision 1, no private data.
REQUEST = b"MPA ID Req Frame" + struct.pack(">BBH", 0, 1, 0)
REPLY_KEY = b"MPA ID Rep Frame"
# An FPDU of 20 octets, two of padding, and no CRC: of DDP's version 0, which there is not.
NO_SEGMENT = struct.pack(">H", 20) + bytes(20 + 2 + 4)
SERVER_NAME = "server.test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return certificates.Authority(tmp_path_factory.mktemp("certificates") / "right")


@pytest.fixture(scope="module")
def own(authority):
    """The server's and the client's, for their addresses."""
    first, second = (beds.ENDS[number][0] for number in range(2))
    return (authority.issue(SERVER_NAME, f"DNS:{SERVER_NAME},IP:{first}"), authority.issue("client.test", f"IP:{second}"))


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """The client's of another CA."""
    other = certificates.Authority(tmp_path_factory.mktemp("others") / "wrong")
    return other.issue("stranger.test", f"IP:{beds.ENDS[1][0]}")


@pytest.fixture(name="settings", autouse=True)
def parameters(kernel):  # pylint: disable=unused-argument
    """Sets the module's parameters, and in the end what they were."""
    before = {name: tlshd.PARAMETERS.joinpath(name).read_text(encoding="ascii") for name in ("tls", "tls_name", "crc")}

    def change(**values):
        for name, value in values.items():
            tlshd.PARAMETERS.joinpath(name).write_text(value, encoding="ascii")

    change(tls="Y")
    yield change
    change(tls=before["tls"], tls_name=before["tls_name"] or "\n")


@pytest.fixture(name="link")
def kernel_link(open_link):
    return open_link("kernel_kernel")


@pytest.fixture(name="start")
def start_daemons(link, tmp_path):
    """Daemons of the server's and the client's end with these files; None: none. They end with the link's programs."""
    def begin(*files):
        for end, each in zip((link.server, link.client), files):
            if each:
                link.started.append(tlshd.start(end, tmp_path, each))

    return begin


@pytest.fixture(name="tap")
def tap_on_the_wire(link):
    tap = tlshd.Tap(link.server)
    yield tap
    tap.close()


@pytest.fixture(name="told")
def told_by_the_kernel(kernel):
    """Waits until the log has a line with all of these words."""
    lines = []

    def find(*words):
        def found():
            lines.extend(kernel.read_messages())
            return any(all(word in line for word in words) for line in lines)
        ends.wait_until(found, f"line in the kernel's log with {words}")

    return find


def fail_to_connect(link, port, server_line="rping -s -P"):
    """A client that the server is not told of: it ends with an error, and the server goes on."""
    server = link.start_server(server_line, port)
    client = link.start_client("rping -c -a {address} -v -C 1", port)
    assert client.wait_exit(ends.SECONDS_MAX) != 0, link.report()
    assert "ping data" not in client.output(), link.report()
    assert server.status() is None and "server ping data" not in server.output(), link.report()


def test_without_tls_the_wire_shows_it_all(link, port, tap, settings):
    """That the next test sees nothing means something."""
    settings(tls="N")
    link.rping(port, "-S 100", count=2)
    seen = tap.octets()
    assert MPA_KEY in seen and PING in seen


def test_pings_and_nothing_of_them_on_the_wire(link, port, tap, start, own):
    start(*own)
    link.rping(port, "-S 100", count=4)
    seen = tap.octets()
    assert DATA_RECORD in seen and MPA_KEY not in seen and PING not in seen


def test_large_messages(link, port, start, own):
    """FPDUs of several records, and records of several FPDUs, verified by both ends."""
    start(*own)
    link.rping(port, "-S 60000", count=10)


def test_with_crcs(link, port, start, own, settings):
    settings(crc="Y")
    start(*own)
    link.rping(port, "-S 5000", count=3)


def test_records_that_tcp_has_no_room_for(link, port, start, own):
    """What waits is sent when there is room, though nothing more is posted."""
    for end in link.server, link.client:
        ends.run([*end.into, "sysctl", "-q", "-w", "net.ipv4.tcp_wmem=4096 4096 4096"])
    start(*own)
    try:
        link.rping(port, "-S 60000", count=5)
    finally:
        for end in link.server, link.client:
            ends.run([*end.into, "sysctl", "-q", "-w", "net.ipv4.tcp_wmem=4096 16384 4194304"])


@pytest.mark.parametrize("name", ["ib_write_bw", "ib_read_bw", "ib_send_bw"])
def test_bandwidth(link, port, start, own, name):
    """More than TCP takes at once, both ends at work."""
    start(*own)
    assert link.perftest(port, name, "-s 262144 -n 20") == [262144]


def test_connections_side_by_side(link, port, start, own):
    start(*own)
    link.pair(port, "ucmatose -c 8 -C 5 -S 2000", "ucmatose -c 8 -C 5 -S 2000 -s {address}")


def test_the_server_s_name(link, port, start, own, settings, told):
    start(*own)
    settings(tls_name=SERVER_NAME)
    link.rping(port, "-S 100", count=1)
    settings(tls_name="other.test")
    fail_to_connect(link, port + 1)
    told("no TLS to", "error -13")


def test_a_client_of_another_ca(link, port, start, own, strange, tap, told):
    """It trusts the server, which does not trust it."""
    start(own[0], strange._replace(ca=own[0].ca))
    fail_to_connect(link, port)
    told("no TLS from", "error -13", "tlshd's log")
    assert MPA_KEY not in tap.octets()


def test_a_server_of_another_ca(link, port, start, own, strange, tap, told):
    start(strange._replace(ca=own[0].ca), own[1])
    fail_to_connect(link, port)
    told("no TLS to", "error -13")
    assert MPA_KEY not in tap.octets()


def test_no_daemon_at_the_client(link, port, start, own, tap, told):
    start(own[0], None)
    fail_to_connect(link, port)
    told("no TLS to", "no tlshd runs")
    assert MPA_KEY not in tap.octets()


def test_no_daemon_at_the_server(link, port, start, own, tap, told):
    start(None, own[1])
    fail_to_connect(link, port)
    told("no TLS from", "no tlshd runs")
    assert MPA_KEY not in tap.octets()


def test_a_plain_client_is_refused(link, port, start, own, told):
    start(*own)
    server = link.start_server("rping -s -P", port)
    with tlshd.connect(link.client, link.server.address, port) as plain:
        plain.sendall(REQUEST)
        assert REPLY_KEY not in tlshd.read_end(plain)
    told("no TLS from")
    assert server.status() is None


def test_a_plain_server_is_refused(link, port, start, own, told):
    """It gets a ClientHello, whatever it answers."""
    start(*own)
    with tlshd.listen(link.server, port) as listener:
        client = link.start_client("rping -c -a {address} -v -C 1", port)
        plain, _ = listener.accept()
        with plain:
            plain.settimeout(tlshd.SECONDS)
            first = plain.recv(4096)
            plain.sendall(REPLY_KEY + struct.pack(">BBH", 0, 1, 0))
            assert first[:1] == b"\x16" and MPA_KEY not in first + tlshd.read_end(plain)
    assert client.wait_exit(ends.SECONDS_MAX) != 0
    told("no TLS to")


def test_a_silent_server_is_given_up(link, port, start, own):
    """By the deadline of start-up; tlshd's fd does not keep the connection."""
    start(*own)
    with tlshd.listen(link.server, port) as listener:
        client = link.start_client("rping -c -a {address} -v -C 1", port)
        silent, _ = listener.accept()
        with silent:
            silent.settimeout(tlshd.SECONDS)
            tlshd.read_end(silent)
    assert client.wait_exit(ends.SECONDS_MAX) != 0


def test_a_client_that_shows_no_certificate(link, port, start, own, told):
    """tlshd lets it through; the module does not."""
    start(*own)
    server = link.start_server("rping -s -P", port)
    without = own[1]._replace(cert=None)
    with tlshd.connect(link.client, link.server.address, port) as plain, \
            tlshd.context(without).wrap_socket(plain, server_hostname=SERVER_NAME) as secure:
        secure.sendall(REQUEST)
        assert tlshd.read_end(secure) == b""
    told("no TLS from", "no certificate")
    assert server.status() is None


def test_openssl_s_client_with_a_certificate(link, port, start, own):
    """Another TLS gets MPA's Reply from the module."""
    start(*own)
    link.start_server("rping -s -P", port)
    with tlshd.connect(link.client, link.server.address, port) as plain, \
            tlshd.context(own[1]).wrap_socket(plain, server_hostname=SERVER_NAME) as secure:
        secure.sendall(REQUEST)
        assert secure.recv(4096).startswith(REPLY_KEY)


def test_the_end_of_tcp_alone_ends_the_stream(link, port, start, own):
    """Without a close_notify the stream may have been cut short."""
    start(*own)
    server = link.start_server("rping -s", port)
    plain = tlshd.connect(link.client, link.server.address, port)
    secure = tlshd.context(own[1]).wrap_socket(plain, server_hostname=SERVER_NAME)
    secure.sendall(REQUEST)
    assert secure.recv(4096).startswith(REPLY_KEY)
    secure.close()
    server.wait_exit(ends.SECONDS_MAX)


def test_a_close_notify_comes_before_the_fin(link, port, start, own):
    """The module ends the stream, for what came is no DDP. A FIN alone would raise SSLEOFError."""
    start(*own)
    link.start_server("rping -s", port)
    plain = tlshd.connect(link.client, link.server.address, port)
    with tlshd.context(own[1]).wrap_socket(plain, server_hostname=SERVER_NAME, suppress_ragged_eofs=False) as secure:
        secure.sendall(REQUEST)
        assert secure.recv(4096).startswith(REPLY_KEY)
        secure.sendall(NO_SEGMENT)
        while secure.recv(4096):
            pass


def test_a_change_of_keys_ends_the_stream(link, port, start, own, told):
    """A record that is no data, which the kernel's TLS cannot follow."""
    start(*own)
    server = link.start_server("rping -s", port)
    line = [*link.client.into, "openssl", "s_client", "-connect", f"{link.server.address}:{port}", "-tls1_3", "-CAfile",
            own[1].ca, "-cert", own[1].cert, "-key", own[1].key]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        client.stdin.write(REQUEST)
        client.stdin.flush()
        seen = b""
        while REPLY_KEY not in seen:
            piece = client.stdout.read1(4096)
            assert piece, seen
            seen += piece
        client.stdin.write(b"K\n")
        client.stdin.flush()
        told("record that is no data")
        client.kill()
    server.wait_exit(ends.SECONDS_MAX)
