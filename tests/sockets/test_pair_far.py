# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Mode `auto` between two network namespaces, also of one host: the packets are those of the program's own TCP connection, and no others."""

import pathlib
import sys

import conftest
import far_link
import pytest
from test_far import python

LINK = pathlib.Path(__file__).with_name("far_link.py")
SECONDS_MAX = conftest.program.SECONDS_MAX
WAY_MS = 1
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")

# Prints the protocol, and what TCP carries, of all packets of the server's link. The capture is ready before the server is.
SERVER = """
import os, socket
capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
capture.bind(("far0", 3))
with socket.create_server(("10.77.0.1", 4711)) as listener:
    print("ready", flush=True)
    peer = listener.accept()[0]
    peer.sendall(b"first")
    assert peer.recv(100) == b"question"
    peer.sendall(b"answer")
    assert peer.recv(100) == b""
    peer.close()
capture.setblocking(False)
protocols, streams = set(), {}
try:
    while True:
        packet = capture.recv(65536)
        if packet[0] >> 4 != 4:
            continue
        protocols.add(packet[9])
        if packet[9] == socket.IPPROTO_TCP:
            tcp = packet[(packet[0] & 15) * 4:int.from_bytes(packet[2:4], "big")]
            sequence, data = tcp[4:8], tcp[(tcp[12] >> 4) * 4:]
            if data:
                streams.setdefault(packet[12:16][-1], {})[sequence] = data
except BlockingIOError:
    pass
with open(os.environ["SEEN"], "w") as file:
    print(protocols, [b"".join(parts.values()) for host, parts in sorted(streams.items())], file=file)
"""
CLIENT = """
import socket
with socket.create_connection(("10.77.0.1", 4711)) as sock:
    assert sock.recv(100) == b"first"
    sock.sendall(b"question")
    assert sock.recv(100) == b"answer"
"""


@pytest.mark.parametrize("name", ["plain", "pair"])
def test_nothing_but_the_programs_stream(name, request, tmp_path):
    for mode in conftest.open_mode(request, tmp_path, name):
        seen = tmp_path / "seen"
        run = mode.start([sys.executable, LINK, WAY_MS, python(SERVER), python(CLIENT)], SEEN=str(seen),
                         ANYWARP_LOG="info")
        status = run.wait_exit(SECONDS_MAX)
        if status == far_link.CANNOT:
            pytest.skip(run.output())
        assert status == 0, run.report()
        assert seen.read_text() == "{6} [b'firstanswer', b'question']\n", run.report()
        told = run.report().count("is plain TCP: the two ends are on different hosts, and auto works within one")
        assert told == (2 if name == "pair" else 0), run.report()
