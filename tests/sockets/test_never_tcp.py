# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""In mode `on` no byte of the program's is TCP's alone, by whatever way a connection begins."""

import sys

import pytest
from test_ends import SECONDS_MAX

# Both ends of a connection that is begun by a fast open.
FAST_OPEN = """
import ctypes, errno, os, socket, struct, sys
SOL_IWARP, IWARP_MODE, TCP_FASTOPEN_CONNECT = 0x6957, 1, 30
listener = socket.create_server(("127.0.0.1", 0))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
client = socket.socket()
if sys.argv[1] == "sendto":
    assert client.sendto(b"word", socket.MSG_FASTOPEN, listener.getsockname()) == 4
elif sys.argv[1] == "sendmsg":
    assert client.sendmsg([b"wo", b"rd"], [], socket.MSG_FASTOPEN, listener.getsockname()) == 4
elif sys.argv[1] == "sendmmsg":
    address = (ctypes.c_char * 16).from_buffer_copy(struct.pack("=H", 2) + struct.pack(">H4B8x", listener.getsockname()[1], 127, 0, 0, 1))
    part = ctypes.create_string_buffer(b"wo", 2)
    piece = (ctypes.c_void_p * 2)(ctypes.addressof(part), 2)
    message = (ctypes.c_void_p * 8)(ctypes.addressof(address), 16, ctypes.addressof(piece), 1)
    assert ctypes.CDLL(None).sendmmsg(client.fileno(), message, 1, socket.MSG_FASTOPEN) == 1
    client.sendall(b"rd")
else:
    client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    client.connect(listener.getsockname())
    client.sendall(b"word")
server = listener.accept()[0]
assert server.recv(4, socket.MSG_WAITALL) == b"word"
server.sendall(b"back")
assert client.recv(4, socket.MSG_WAITALL) == b"back"
assert all(sock.getsockopt(SOL_IWARP, IWARP_MODE) == 1 for sock in (client, server))
"""


@pytest.mark.parametrize("how", ["sendto", "sendmsg", "sendmmsg", "connect"])
def test_fast_open_is_iwarp(only_iwarp, how):
    if how == "sendmmsg" and sys.maxsize < 2**32:
        pytest.skip("the struct of the messages is that of 64 bits")
    run = only_iwarp.start([sys.executable, "-c", FAST_OPEN, how])
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# By the protocol that the kernel has, whatever the program has asked for.
MPTCP = '''
import errno, os, socket, subprocess, sys
try:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
except OSError:
    sys.exit(3)
if sys.argv[1] == "connects":
    listener = socket.create_server(("127.0.0.1", 0))
    outcome = sock.connect_ex(listener.getsockname())
else:
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    client = subprocess.Popen([sys.executable, "-c", """if True:
        import socket, sys
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        client.connect(("127.0.0.1", int(sys.argv[1])))
        client.recv(1)""", str(sock.getsockname()[1])], env=env)
    server = sock.accept()[0]
    try:
        server.recv(1)
        outcome = 0
    except OSError as error:
        outcome = error.errno
assert outcome == errno.EPROTONOSUPPORT, outcome
'''


@pytest.mark.parametrize("how", ["connects", "accepts"])
def test_mptcp_is_refused(only_iwarp, how):
    run = only_iwarp.start([sys.executable, "-c", MPTCP, how])
    status = run.wait_exit(SECONDS_MAX)
    if status == 3:
        pytest.skip("this kernel has no MPTCP")
    assert status == 0, run.report()
    assert "it is a socket of MPTCP: run the program without mptcpize" in run.output(), run.report()
