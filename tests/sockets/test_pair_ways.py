# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The ways by which two ends in mode `auto` come to the kernel's pair, and do not; and what uses a pair. Each script runs with the
kernel's TCP alone as well, which proves it. It ends with what both ends are, where that is no matter of chance."""

import os
import pathlib
import sys

import conftest
import program
import pytest

SECONDS_MAX = 60
HEAD = f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nfrom pair_head import *\n"
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")


@pytest.fixture(params=["plain", "pair"])
def mode(request, tmp_path, open_libraries):
    yield from conftest.open_mode(request, tmp_path, request.param)


@pytest.fixture
def auto(request, tmp_path):
    yield from conftest.open_mode(request, tmp_path, "pair")


def run(mode, script, *argv, **environment):
    """Returns the last line."""
    started = mode.start([sys.executable, "-B", "-c", HEAD + script, *argv], **environment)
    assert started.wait_exit(SECONDS_MAX) == 0, started.report()
    return started.output().splitlines()[-1]


def expected(mode, kinds="pair pair"):
    return kinds if mode.name == "pair" else "tcp tcp"


ASK = """
listener, client, server = connected()
exchange(client, server)
print(kind(client), kind(server))
"""


def test_two_ends_are_a_pair(mode):
    assert run(mode, ASK) == expected(mode)


CONNECT_UNSEEN = """
listener = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
address = raw_address(listener)
raw("connect", client.fileno(), address, len(address))
client.sendall(b"first")
accepting = in_thread(listener.accept)
try:
    client.connect(listener.getsockname())
except OSError as error:
    assert error.errno == 106, error
else:
    assert False, "EISCONN"
server = accepting()[0]
server.settimeout(10)
assert server.recv(5, socket.MSG_WAITALL) == b"first"
exchange(client, server)
print(kind(client), kind(server))
"""


def test_connect_of_what_is_connected(mode):
    """The bytes that went by TCP before are not lost."""
    assert run(mode, CONNECT_UNSEEN) == "tcp tcp"


CONNECT_TWICE = """
import errno
for _ in range(100):
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.socket()
    gate = threading.Barrier(2)
    def connect():
        gate.wait()
        error = client.connect_ex(listener.getsockname())
        client.sendall(b"ab")
        return error
    others = [in_thread(connect), in_thread(connect)]
    server = listener.accept()[0]
    server.settimeout(10)
    errors = {other() for other in others}
    assert 0 in errors and errors <= {0, errno.EISCONN, errno.EALREADY}, errors
    got = server.recv(4, socket.MSG_WAITALL)
    assert got == b"abab", got
    assert kind(client) == kind(server)
print("ok")
"""


def test_two_threads_connect_one_socket(mode):
    assert run(mode, CONNECT_TWICE) == "ok"
