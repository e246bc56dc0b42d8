# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Peers of one process that are strangers to each other. One knows where another one's octets are placed (it has seen
them on the wire, say) and writes there over a connection of its own. An STag is good for one connection: the
writer gets a Terminate, and the octets are as their own peer wrote them."""

import contextlib
import os
import socket
import struct
import sys

import conftest
import iwarp
import pytest
from test_ends import SECONDS_MAX

# As programs have it: what rsocket(3) is for, or what the library makes of socket(2).
SERVE_R = """
import ctypes, struct, sys, threading
rdma = ctypes.CDLL(sys.argv[1], use_errno=True)
fd = rdma.rsocket(2, 1, 0)
name = ctypes.create_string_buffer(struct.pack("=HH", 2, 0) + bytes([127, 0, 0, 1]) + bytes(8))
assert rdma.rbind(fd, name, 16) == 0 and rdma.rlisten(fd, 128) == 0
rdma.rgetsockname(fd, name, ctypes.byref(ctypes.c_uint32(16)))
print("port", struct.unpack(">H", name.raw[2:4])[0], flush=True)
def echo(fd):
    buffer = ctypes.create_string_buffer(4096)
    while (n := rdma.rrecv(fd, buffer, 4096, 0)) > 0:
        rdma.rsend(fd, buffer, n, 0)
    rdma.rclose(fd)
while True:
    threading.Thread(target=echo, args=[rdma.raccept(fd, None, None)], daemon=True).start()
"""
SERVE = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
def echo(sock):
    try:
        while octets := sock.recv(4096):
            sock.sendall(octets)
    except OSError:
        pass
while True:
    threading.Thread(target=echo, args=[listener.accept()[0]], daemon=True).start()
"""
INVALID_STAG, NOT_THIS_STREAM = 0, 2
DATA, ROUND = 0, 8
OUR_RING, OUR_SGL = (0x1000, 17), (0x2000, 18)

HELLO = (bytes([1, 1]) + struct.pack(">HI", ROUND, 0) + struct.pack(">QII", *OUR_SGL, 2) +
         struct.pack(">QII", *OUR_RING, 4096))


class Peer:
    """The client's half of rsockets, as far as a question needs it."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        self.sock.sendall(iwarp.start_frame(private=HELLO))
        self.octets, self.sent = b"", 0
        said = self.take(self.whole_frame)
        self.ring, self.stag, _ = struct.unpack(">QII", said[iwarp.START_OCTETS:][24:40])

    def whole_frame(self):
        """How long the Reply is, once its front is here."""
        if len(self.octets) < iwarp.START_OCTETS:
            return iwarp.START_OCTETS
        assert self.octets.startswith(iwarp.KEY_REPLY), self.octets
        return iwarp.START_OCTETS + struct.unpack(">H", self.octets[18:20])[0]

    def take(self, length):
        while len(self.octets) < length():
            came = self.sock.recv(4096)
            assert came, "the server has ended the connection"
            self.octets += came
        taken, self.octets = self.octets[:length()], self.octets[length():]
        return taken

    def write(self, place, octets):
        self.sock.sendall(iwarp.fpdu(iwarp.tagged(iwarp.WRITE, place[1], place[0], octets)))

    def tell(self, length):
        self.sent += 1
        self.sock.sendall(iwarp.fpdu(iwarp.untagged(iwarp.SEND, 0, self.sent,
                                                    struct.pack(">I", DATA << 29 | length))))

    def segment(self):
        """The next one of the server's."""
        def fpdu_length():
            if len(self.octets) < 2:
                return 2
            body = 2 + struct.unpack(">H", self.octets[:2])[0]
            return body + -body % 4 + 4
        fpdu = self.take(fpdu_length)
        return iwarp.parse_segment(fpdu[2:2 + struct.unpack(">H", fpdu[:2])[0]])

    def await_segment(self, wanted):
        while not wanted(segment := self.segment()):
            pass
        return segment

    def echo(self, length):
        """Of so many octets that are in the ring already."""
        self.tell(length)
        return self.await_segment(lambda segment: segment.opcode == iwarp.WRITE and
                                  segment.stag == OUR_RING[1]).payload


FILES_MAX, STRANGERS = 256, 300
# rlisten has started the one thread that takes Requests; the program takes none of them.
LISTEN_R = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES_MAX}, {FILES_MAX}))
""" + SERVE_R.partition("def echo")[0] + """
import signal
signal.pause()
"""


def unread_octets(pid, port):
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows
               if row[3] == "01" and int(row[1].partition(":")[2], 16) == port)


def test_queue_of_rsockets(plain):
    """Whoever waits for raccept has files of the process: all of them together few enough."""
    server = plain.start([sys.executable, "-c", LISTEN_R, conftest.BUILD / "lib" / "librdmacm.so.1"])
    port = int(server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])
    with contextlib.ExitStack() as stack:
        for _ in range(STRANGERS):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS_MAX))
            sock.sendall(iwarp.start_frame(private=HELLO))
        server.wait_until(lambda: unread_octets(server.pid, port) == 0, "the Requests to be read")
        assert len(os.listdir(f"/proc/{server.pid}/fd")) < FILES_MAX // 2


@pytest.fixture(params=["rsockets", "proxy"])
def port(request, tmp_path, monkeypatch):
    """Of an echo server."""
    name = "plain" if request.param == "rsockets" else "iwarp"
    code = [SERVE_R, conftest.BUILD / "lib" / "librdmacm.so.1"] if name == "plain" else [SERVE]
    for opened in conftest.open_mode(request, tmp_path, name):
        server = opened.start([sys.executable, "-c", *code])
        yield int(server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])


def test_stag_of_another_connection(port):
    victim, attacker = Peer(port), Peer(port)
    question = victim.ring + len(b"first")
    victim.write((question, victim.stag), b"question")
    victim.write((victim.ring, victim.stag), b"first")
    assert victim.echo(len(b"first")) == b"first"
    attacker.write((question, victim.stag), b"harmful!")
    answer = attacker.await_segment(lambda segment: segment.opcode == iwarp.TERMINATE)
    assert iwarp.parse_terminate(answer) in [(1, 1, INVALID_STAG), (1, 1, NOT_THIS_STREAM)]
    assert victim.echo(len(b"question")) == b"question"
