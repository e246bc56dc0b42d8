# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ends that are far from each other: the client's patience with the server's answer grows with the path."""

import pathlib
import shlex
import sys

import conftest
import far_link
import pytest

LINK = pathlib.Path(__file__).with_name("far_link.py")
SECONDS_MAX = conftest.program.SECONDS_MAX
WAY_MS = 400  # more than the patience without it, on any machine: what a loaded one adds is little beside it
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")

SERVER = """
import socket
with socket.create_server(("10.77.0.1", 4711)) as listener:
    print("ready", flush=True)
    for _ in range(2):
        with listener.accept()[0] as peer:
            peer.sendall(peer.recv(5))
"""
CLIENT = """
import socket
for _ in range(2):
    with socket.create_connection(("10.77.0.1", 4711)) as sock:
        sock.sendall(b"hello")
        assert sock.recv(5) == b"hello"
"""


def python(code):
    return shlex.join([sys.executable, "-c", code])


@pytest.mark.parametrize("record", ["off", "on"])
def test_answer_comes_late(record, request, tmp_path):
    for mode in conftest.open_mode(request, tmp_path, "iwarp"):
        run = mode.start([sys.executable, LINK, WAY_MS, python(SERVER), python(CLIENT)], ANYWARP_LOG="info", ANYWARP_SOCKETS_RECORD=record)
        status = run.wait_exit(SECONDS_MAX)
        if status == far_link.CANNOT:
            pytest.skip(run.output())
        assert status == 0, run.report()
        assert run.output().count(" path tcp") == (4 if record == "off" else 0), run.report()  # QPs, of which a record has none
        assert "is no record" not in run.output(), run.report()
