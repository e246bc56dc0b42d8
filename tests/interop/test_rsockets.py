# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs for rsockets of Debian on our libraries, and the very same on rdma-core and a kernel's device."""

import re
import select

import ends
import program
import pytest

MODES = {"nonblocking": "", "blocking": "-T b", "polling": "-T a", "sleeping": "-T b -T a"}
CUT_OFF_SECONDS, ATTEMPTS = 20, 3  # what is cut off, about one of a hundred, is done again
ROW = r"(?m)^\w+ +[\d.]+[kmg]? +\d+[kmb]? +\d+[kmb]? +[\d.]+[kmg]? +[\d.]+s +[\d.]+ +[\d.]+$"


def is_hung_up_early(end, status, options):
    """rdma-core's rpoll tells POLLHUP once the peer is gone, with octets still to be read; rstream
    gives up then, with its revents as the status. The server, which heard everything, is done."""
    return end.kind != ends.USER and "-T a" in options and status & select.POLLHUP


def is_cut_off(end, client, resets_before):
    """rstream as server closes once siw has completed what it sent, which is when TCP has it. If credits
    of ours come behind that, the guest's TCP resets the connection and what it had not sent yet never
    leaves it (docs/interop.md): the client waits for ever, or is told of a reset."""
    if end.kind != ends.SIW or ends.reset_count(end) == resets_before:
        return False
    try:
        return client.wait_exit(CUT_OFF_SECONDS) != 0
    except program.Trouble:
        return True


def came_too_early(server, client):
    """riostream as server sets the size of its table of buffers behind rlisten, and rdma-core accepts in a thread of its own: a
    client that comes in between finds a table of no entries, and the server then waits for ever."""
    program.wait_until(lambda: client.status() is not None or server.status() is not None, "end of either", ends.SECONDS_MAX)
    return client.status() not in (None, 0) and "riomap: Cannot allocate memory" in client.output()


def run(link, port, client_line, server_line):
    """Server and client, which have ended, and the client's status; None: siw cut them off, or the client came too early."""
    resets = ends.reset_count(link.server) if link.server.kind == ends.SIW else None
    server = link.start_server(server_line, port)
    client = link.start_client(client_line, port)
    if link.server.kind == ends.SIW and came_too_early(server, client):
        server.kill()
        return None
    assert server.wait_exit(ends.SECONDS_MAX) == 0, server.report() + client.report()
    if is_cut_off(link.server, client, resets):
        client.kill()
        return None
    return server, client, client.wait_exit(ends.SECONDS_MAX)


def stream(link, port, name, options, address="{address}", server_options=""):
    lines = f"{name} -s {address} {options}", f"{name} {options} {server_options}"
    whole = next(filter(None, (run(link, port, *lines) for _ in range(ATTEMPTS))), None)
    assert whole, f"{ATTEMPTS} times the guest has reset the connection that its server had closed, or was not ready"
    server, client, status = whole
    assert "failed" not in server.output() + client.output()
    assert len(re.findall(ROW, server.output())) == 1
    if not is_hung_up_early(link.client, status, options):
        assert status == 0, client.report()
        assert len(re.findall(ROW, client.output())) == 1


@pytest.mark.parametrize("size, mode", [(16, "nonblocking"), (1000, "polling"), (65536, "blocking"),
                                        (1000000, "sleeping")])
def test_stream_is_verified(link, port, size, mode):
    count = min(200, 4000000 // size)
    stream(link, port, "rstream", f"-T v -S {size} -C {count} -I 2 {MODES[mode]}")


@pytest.mark.parametrize("size, mode", [(17, "sleeping"), (1000, "blocking"), (65536, "polling"),
                                        (1000000, "nonblocking")])
def test_direct_writes_are_verified(link, port, size, mode):
    count = min(200, 4000000 // size)
    stream(link, port, "riostream", f"-T v -S {size} -C {count} -I 2 {MODES[mode]}")


@pytest.mark.parametrize("buffers", [2048, 1000000])
def test_buffer_sizes(link, port, buffers):
    stream(link, port, "rstream", f"-T v -T b -S 65536 -C 20 -I 2 -B {buffers}")


def test_over_ipv6(link, port):
    stream(link, port, "rstream", "-T v -T b -S 1000 -C 100", "{address6}", "-b ::")


@pytest.mark.parametrize("size", [1, 3000001])
def test_copies_are_whole(link, port, size):
    """The client says what came to be of its file; both files are summed."""
    source, target = f"{link.client.folder}/source{port}", f"{link.server.folder}/target{port}"
    link.start_server("rcopy", port)
    link.client.shell(f"head -c {size} /dev/urandom >{source}")
    client = link.start_client(f"rcopy {source} {{address}}:{target}", port)
    assert client.wait_exit(ends.SECONDS_MAX) == 0, link.report()
    assert link.client.shell(f"md5sum <{source}") == link.server.shell(f"md5sum <{target}")
    link.client.shell(f"rm {source}")
    link.server.shell(f"rm {target}")
