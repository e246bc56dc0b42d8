# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What programs do with a connection that has become the kernel's pair: every call, seen by a wrapper or not, is the kernel's, and names,
options and events are TCP's. Each script runs with the kernel's TCP alone as well, which proves it."""

import os
import random
import signal
import sys

import conftest
import pytest
from test_pair_ways import HEAD, expected, run

KILLS = int(os.environ.get("PAIR_KILLS", "50"))
SECONDS_MAX = 60
DEEP = conftest.BUILD / "tests" / "deep.so"
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")


@pytest.fixture(params=["plain", "pair"])
def mode(request, tmp_path, open_libraries):
    yield from conftest.open_mode(request, tmp_path, request.param)


RAW = """
listener, client, server = connected()
word = ctypes.create_string_buffer(b"seen by nobody", 14)
into = ctypes.create_string_buffer(14)
def turn(source, sink):
    assert raw("write", source.fileno(), word, 14) == 14
    assert sink.recv(14, socket.MSG_WAITALL) == word.raw
    source.sendall(word.raw)
    assert raw("read", sink.fileno(), into, 14) == 14 and into.raw == word.raw
turn(client, server)
turn(server, client)
print(kind(client), kind(server))
"""

DEEP_IO = """
deep = ctypes.CDLL(sys.argv[1], mode=os.RTLD_DEEPBIND | os.RTLD_NOW)
listener, client, server = connected()
into = ctypes.create_string_buffer(5)
for source, sink in ((client, server), (server, client)):
    assert deep.send_deep(source.fileno(), b"first", 5) == 5
    assert sink.recv(5, socket.MSG_WAITALL) == b"first"
    source.sendall(b"later")
    assert deep.recv_deep(sink.fileno(), into, 5) == 5 and into.raw == b"later"
print(kind(client), kind(server))
"""

# struct iocb: data, key and flags, opcode (0: read, 1: write), fd, buffer, length, offset.
AIO = """
import struct
listener, client, server = connected()
context = ctypes.c_ulong(0)
raw("io_setup", 4, ctypes.byref(context))
def submit(opcode, fd, buffer):
    iocb = ctypes.create_string_buffer(struct.pack("=QIIHhIQQqQII", 0, 0, 0, opcode, 0, fd, ctypes.addressof(buffer), len(buffer), 0, 0, 0, 0), 64)
    pointer = ctypes.c_void_p(ctypes.addressof(iocb))
    assert raw("io_submit", context, ctypes.c_long(1), ctypes.byref(pointer)) == 1
    events = ctypes.create_string_buffer(32)
    assert raw("io_getevents", context, ctypes.c_long(1), ctypes.c_long(1), events, None) == 1
    return struct.unpack("=QQqq", events.raw)[2]
for source, sink in ((client, server), (server, client)):
    word, into = ctypes.create_string_buffer(b"by aio", 6), ctypes.create_string_buffer(6)
    assert submit(1, source.fileno(), word) == 6
    assert submit(0, sink.fileno(), into) == 6 and into.raw == b"by aio"
print(kind(client), kind(server))
"""

SPLICE = """
listener, client, server = connected()
for source, sink in ((client, server), (server, client)):
    out, into = os.pipe()
    os.write(into, b"through a pipe")
    assert os.splice(out, source.fileno(), 14) == 14
    assert os.splice(sink.fileno(), into, 14) == 14
    assert os.read(out, 14) == b"through a pipe"
print(kind(client), kind(server))
"""

EXECUTED = """
import subprocess
listener, client, server = connected()
CHILD = '''import socket, sys
sock = socket.socket(fileno=int(sys.argv[1]))
sock.sendall(sock.recv(5, socket.MSG_WAITALL))
print(sock.getsockname(), sock.getpeername()) if sys.argv[2] == "with" else print("none")
'''
for sock, peer in ((client, server), (server, client)):
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" or sys.argv[1] == "with"}
    with subprocess.Popen([sys.executable, "-c", CHILD, str(sock.fileno()), sys.argv[1]], pass_fds=[sock.fileno()], env=env,
                          stdout=subprocess.PIPE, text=True) as child:
        peer.sendall(b"hello")
        assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
        names = child.stdout.read().strip()
    assert sys.argv[1] != "with" or names == f"{sock.getsockname()} {sock.getpeername()}", names
exchange(client, server)
print(kind(client), kind(server))
"""

PASSED = """
import struct, subprocess
listener, client, server = connected()
ours, theirs = socket.socketpair()
CHILD = '''import socket, sys
door = socket.socket(fileno=int(sys.argv[1]))
sock = socket.socket(fileno=socket.recv_fds(door, 1, 1)[1][0])
sock.sendall(sock.recv(5, socket.MSG_WAITALL))
if sys.argv[2] == "with":
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(sock.getsockname(), sock.getpeername(), sock.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET)
'''
for sock, peer in ((client, server), (server, client)):
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" or sys.argv[1] == "with"}
    with subprocess.Popen([sys.executable, "-c", CHILD, str(theirs.fileno()), sys.argv[1]], pass_fds=[theirs.fileno()], env=env,
                          stdout=subprocess.PIPE, text=True) as child:
        socket.send_fds(ours, [b"x"], [sock.fileno()])
        peer.sendall(b"hello")
        assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
        said = child.stdout.read().strip()
        assert child.wait() == 0
    assert sys.argv[1] != "with" or said == f"{sock.getsockname()} {sock.getpeername()} True", said
exchange(client, server)
print(kind(client), kind(server))
"""

FORKED = """
listener, client, server = connected()
child = os.fork()
if not child:
    client.close()
    while data := server.recv(100):
        server.sendall(data)
    os._exit(0)
server.close()
for _ in range(100):
    client.sendall(b"to the child")
    assert client.recv(12, socket.MSG_WAITALL) == b"to the child"
client.close()
assert os.waitpid(child, 0)[1] == 0
print("ok")
"""


@pytest.mark.parametrize("script, argv", [(RAW, []), (DEEP_IO, [DEEP]), (AIO, []), (SPLICE, []), (EXECUTED, ["with"]),
                                          (EXECUTED, ["without"]), (PASSED, ["with"]), (PASSED, ["without"])],
                         ids=["raw", "deep", "aio", "splice", "exec-with", "exec-without", "rights-with", "rights-without"])
def test_call(mode, script, argv):
    assert run(mode, script, *argv) == expected(mode)


def test_child_of_a_fork(mode):
    assert run(mode, FORKED) == "ok"
