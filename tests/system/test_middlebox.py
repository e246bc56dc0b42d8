# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified haproxy, nginx and socat between two ends: they know nothing of FPDUs and cut the
stream wherever they like. All must arrive whole and in order, and when a middlebox dies both ends
must hear of it."""

import itertools

import capture
import middlebox
import pytest
from spoiler import Spoiler

import conftest

OPCODES = conftest.BUILD / "tests" / "opcodes"
SMALL = "1,2,3,13,100"
SIZES = {middlebox.haproxy: f"{SMALL},508,509,4000,65536,3000001",
         middlebox.nginx: f"{SMALL},508,509,4000,65536,3000001",
         middlebox.nginx13: f"{SMALL},508,509,4000,65536",
         middlebox.socat: f"{SMALL},4000,65536,1000003",
         middlebox.socat7: f"{SMALL},508,509,4000",
         middlebox.socat1: "1,13,600"}
BOXES = list(SIZES)
LOST, SECONDS_MAX = 3, 60
HEADER_OCTETS = 16  # of a tagged FPDU


@pytest.fixture
def box_of(start, tmp_path):
    """Starts a middlebox of that kind before the port of a server."""
    return lambda make, there: middlebox.Middlebox(make, start, tmp_path, there)


def policy(text, host_path):
    return ["env", f"ANYWARP_MPA={text}", *([f"ANYWARP_HOST_PATH={host_path}"] if host_path else [])]


def begin(start, port, box_port, line, server="", client="", host_path=""):
    """(server, client) of our program; server and client are their policies."""
    return (start.server(f"{OPCODES} {line}", port, prefix=policy(server, host_path)),
            start(f"{OPCODES} {line} -a 127.0.0.1 -p {box_port}", prefix=policy(client, host_path)))


def assert_ends(ends, status=0):
    assert [end.wait_exit(SECONDS_MAX) for end in ends] == [status] * len(ends)


@pytest.mark.parametrize("server, client, ending", [
    ("off", "off", "client"), ("on", "on", "server"), ("on", "off", "client"),
    ("off", "on", "server")])
@pytest.mark.parametrize("make", BOXES)
def test_everything_arrives(start, port, box_of, make, server, client, ending):
    """Three connections at once, verified both ways; with and without markers. One end speaks its
    last words and closes at once, and they arrive."""
    box = box_of(make, port)
    assert_ends(begin(start, port, box.port, f"-n 3 -S {SIZES[make]} -e {ending}",
                      f"markers={server}", f"markers={client}"))


@pytest.mark.parametrize("make", BOXES)
@pytest.mark.parametrize("violator", ["client", "server"])
def test_terminate_arrives(start, port, box_of, make, violator):
    """As an error at both ends, not as silence."""
    box = box_of(make, port)
    assert_ends(begin(start, port, box.port, f"-n 3 -S 100 -e {violator}-violates"))


@pytest.mark.parametrize("make, size", [(middlebox.haproxy, 60000), (middlebox.nginx, 60000),
                                        (middlebox.socat7, 2000)])
def test_rping(start, port, box_of, make, size):
    box = box_of(make, port)
    server = start.server(f"rping -s -a 127.0.0.1 -C 20 -V -S {size}", port)
    client = start(f"rping -c -a 127.0.0.1 -p {box.port} -C 20 -v -V -S {size}")
    assert_ends((client, server))
    assert client.output().count("ping data: ") == 20


@pytest.mark.parametrize("line", ["ib_write_bw -s 65536 -n 100", "ib_read_bw -s 65536 -n 100",
                                  "ib_send_bw -s 65536 -n 100", "ib_send_lat -s 64 -n 200"])
def test_perftest(start, port, box_of, line):
    box = box_of(middlebox.haproxy, port)
    server = start.server(f"{line} -R -F", port)
    assert_ends((start(f"{line} -R -F -p {box.port} 127.0.0.1"), server))


@pytest.mark.parametrize("make", BOXES)
def test_killed_middlebox(start, port, box_of, make):
    """In the middle of messages: each end's queues are flushed in order, it hears DISCONNECTED,
    and what comes next works."""
    box = box_of(make, port)
    line = f"-n 3 -S {SIZES[make]}"
    ends = begin(start, port, box.port, f"{line} -C 1000000")
    for end, connection in itertools.product(ends, range(3)):
        end.wait_output(f"connection {connection} round 0", SECONDS_MAX)
    box.kill()
    assert_ends(ends, LOST)
    for end in ends:
        assert end.output().count(" ended: ") == 3 and "as it should" not in end.output()
    box.run()
    assert_ends(begin(start, port, box.port, line))


@pytest.mark.parametrize("make", [middlebox.haproxy, middlebox.nginx, middlebox.socat7])
def test_middlebox_without_a_server(start, port, box_of, make):
    """TCP connects and then closes: an error soon, and no connection."""
    box = box_of(make, port)
    client = start(f"rping -c -a 127.0.0.1 -p {box.port}")
    assert client.wait_exit(SECONDS_MAX) > 0
    assert "RDMA_CM_EVENT_" in client.output()


@pytest.mark.parametrize("make", [middlebox.haproxy, middlebox.nginx_half_close, middlebox.socat,
                                  middlebox.socat7])
@pytest.mark.parametrize("ending", ["client-reads", "server-reads"])
def test_half_closed_stream_still_answers(start, port, box_of, make, ending):
    """The FIN goes on without the other direction: a Read posted just before it is answered."""
    box = box_of(make, port)
    assert_ends(begin(start, port, box.port, f"-n 3 -S 4000 -o write -e {ending}"))


def test_a_middlebox_that_knows_no_half_close_is_no_silence(start, port, box_of):
    """nginx by default closes both directions at the first FIN: the last Read may be lost, which
    its poster then hears."""
    box = box_of(middlebox.nginx, port)
    ends = begin(start, port, box.port, "-n 3 -S 3000000 -o write -e client-reads")
    assert ends[1].wait_exit(SECONDS_MAX) in (0, LOST)
    assert ends[0].wait_exit(SECONDS_MAX) in (0, LOST)


@pytest.mark.parametrize("make", [middlebox.nginx13, middlebox.socat7, middlebox.socat1])
def test_the_stream_is_cut(start, tmp_path, port, box_of, make):
    """The middleboxes do what they are here for: what leaves them has FPDUs in several
    segments, and headers cut in two. How many is up to the kernel, which may join segments."""
    box = box_of(make, port)
    try:
        captured = capture.Capture(tmp_path / "cut", "lo", "127.0.0.1", port)
    except capture.NotAllowed as error:
        pytest.skip(str(error))
    with captured:
        # Without "off" there are FPDUs of the host path, in vain over a middlebox, which are no DDP segments.
        assert_ends(begin(start, port, box.port, "-S 300", host_path="off"))
        recorded = captured.stop()
    one, = recorded.conversations
    assert one.problems() == []
    starts = [packet.sequence - 1 - one.initiator.start_end for packet in recorded.packets
              if (packet.source, packet.destination) == one.ports]
    cuts = [[at - fpdu.first for at in starts if fpdu.first < at < fpdu.end]
            for fpdu in one.initiator.fpdus]
    assert sum(bool(each) for each in cuts) > 1
    assert any(at < HEADER_OCTETS for each in cuts for at in each)


@pytest.mark.parametrize("crc, status, text", [("on", LOST, "ended: "),
                                               ("off", 1, "not true: !memcmp")])
def test_a_spoiled_octet_is_found(start, port, crc, status, text):
    """The CRC finds it, or else these tests' own comparison does."""
    box = Spoiler(port, spoiled_at=2000)
    ends = begin(start, port, box.port, "-S 4000 -o write", f"crc={crc}", f"crc={crc}")
    assert ends[0].wait_exit(SECONDS_MAX) == status
    assert text in ends[0].output()
    assert ends[1].wait_exit(SECONDS_MAX) == LOST
