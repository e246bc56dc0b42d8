# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What programs do with a connection that has become the kernel's pair: every call, seen by a wrapper or not, is the kernel's, and names,
options and events are TCP's. Each script runs with the kernel's TCP alone as well, which proves it."""

import os
import random
import time

import conftest
import program
import pytest
import test_pair
from test_pair_ways import expected, run

KILLS = int(os.environ.get("PAIR_KILLS", "50"))
SECONDS_MAX = program.SECONDS_MAX
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


NAMES = """
family, address, to = getattr(socket, sys.argv[1]), sys.argv[2], sys.argv[3]
if to == "own":
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.connect(("192.0.2.1", 9))
    to = probe.getsockname()[0]
listener = socket.socket(family)
if family == socket.AF_INET6:
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
listener.bind((address, 0))
listener.listen()
attended(listener)
accepting = in_thread(listener.accept)
client = socket.socket(socket.AF_INET if "." in to and ":" not in to else socket.AF_INET6)
client.connect((to, listener.getsockname()[1]))
server, name = accepting()
assert client.getpeername()[:2] == (to, listener.getsockname()[1]), client.getpeername()
assert len(client.getsockname()) == len(client.getpeername()) == (2 if client.family == socket.AF_INET else 4)
assert name == server.getpeername() and server.family == family
plain = lambda name: (name[0].removeprefix("::ffff:"), name[1])
assert plain(server.getpeername()) == plain(client.getsockname())
assert plain(server.getsockname()) == plain(client.getpeername())
exchange(client, server)
print(kind(client), kind(server))
"""
WAYS = {"loopback": ("AF_INET", "127.0.0.1", "127.0.0.1"), "another loopback": ("AF_INET", "127.0.0.9", "127.0.0.9"),
        "any": ("AF_INET", "0.0.0.0", "127.0.0.1"), "own": ("AF_INET", "0.0.0.0", "own"), "IPv6": ("AF_INET6", "::1", "::1"),
        "any IPv6": ("AF_INET6", "::", "::1"), "IPv4 to IPv6": ("AF_INET6", "::", "127.0.0.1"),
        "mapped": ("AF_INET6", "::", "::ffff:127.0.0.1")}


@pytest.mark.parametrize("way", WAYS)
def test_names(mode, way):
    assert run(mode, NAMES, *WAYS[way]) == expected(mode)


OPTIONS = """
import struct, time
listener, client, server = connected()
for sock in (client, server):
    for level, name, value in ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                               (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77), (socket.IPPROTO_IP, socket.IP_TOS, 0x10)):
        sock.setsockopt(level, name, value)
        assert sock.getsockopt(level, name) == value, name
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == bytes([1])
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
    began = time.monotonic()
    try:
        sock.recv(1)
        assert False
    except BlockingIOError:
        assert time.monotonic() - began > 0.04
print(kind(client), kind(server))
"""

BEFORE = """
import struct
listener = listening()
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 7, 0))
like = socket.socket()  # the kernel rounds to its ticks
like.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
os.set_inheritable(client.fileno(), True)
accepting = in_thread(listener.accept)
client.connect(listener.getsockname())
server = accepting()[0]
assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1 and client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
assert client.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == like.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
assert server.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == struct.pack("ll", 7, 0)
assert os.get_inheritable(client.fileno()) and not os.get_inheritable(server.fileno())
print(kind(client), kind(server))
"""

RESET = """
import struct
listener, client, server = connected()
exchange(client, server)
for one, other in ((client, server), connected()[1:], connected()[:0:-1]):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    kinds = kind(one), kind(other)
    one.close()
    try:
        other.recv(1)
        assert False
    except ConnectionResetError:
        pass
print(*kinds)
"""

COUNTS = """
import array, fcntl, select, signal, termios
FIONREAD, SIOCOUTQ, SIOCATMARK = 0x541b, 0x5411, 0x8905
listener, client, server = connected()
def ioctl(sock, request):
    value = array.array("i", [-1])
    fcntl.ioctl(sock, request, value)
    return value[0]
client.sendall(b"12345")
client.sendall(b"678")
select.select([server], [], [])
while ioctl(server, FIONREAD) < 8:
    pass
assert ioctl(server, FIONREAD) == 8
server.recv(2)
assert ioctl(server, FIONREAD) == 6
server.recv(6)
while ioctl(client, SIOCOUTQ):
    pass
got = []
signal.signal(signal.SIGURG, lambda *_: got.append(1))
fcntl.fcntl(server, fcntl.F_SETOWN, os.getpid())
client.sendall(b"ab")
client.send(b"!", socket.MSG_OOB)
client.sendall(b"cd")
while not got or ioctl(server, FIONREAD) < 2: # those before the mark
    pass
assert server.recv(10) == b"ab"
assert ioctl(server, SIOCATMARK) == 1
assert server.recv(1, socket.MSG_OOB) == b"!"
assert server.recv(10) == b"cd"
assert ioctl(server, SIOCATMARK) == 0
print(kind(client), kind(server))
"""

# Which events an end sees that has closed nothing, when its peer has shut its writing side, or has closed.
EVENTS = """
import select
def events(close, edge, early=False):
    listener = listening()
    client, poll, epoll = socket.socket(), select.poll(), select.epoll()
    if early:
        epoll.register(client, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)
    accepting = in_thread(listener.accept)
    client.connect(listener.getsockname())
    server = accepting()[0]
    poll.register(client, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    if not early:
        epoll.register(client, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | (select.EPOLLET if edge else 0))
    close(server)
    while not poll.poll(0) or not poll.poll(0)[0][1] & select.POLLIN:
        pass
    return poll.poll(0)[0][1], epoll.poll(0)[0][1], [len(s) for s in select.select([client], [client], [client], 0)], client.recv(1)
print([events(lambda sock: sock.shutdown(socket.SHUT_WR), False), events(lambda sock: sock.close(), False),
       events(lambda sock: sock.close(), True), events(lambda sock: sock.close(), False, True)])
"""


@pytest.mark.parametrize("script", [OPTIONS, BEFORE, RESET, COUNTS], ids=["options", "before", "reset", "counts"])
def test_answers(mode, script):
    assert run(mode, script) == expected(mode)


def test_events_of_the_end(mode):
    """No hang-up: one direction has ended."""
    assert run(mode, EVENTS) == str([(0x2005, 0x2005, [1, 1, 0], b"")] * 4)


HANGUPS = """
import select, struct
def seen(ours, theirs):
    listener, client, server = connected()
    poll = select.poll()
    poll.register(client, 0x2001)
    ours(client), theirs(server)
    while not poll.poll(0) or not poll.poll(0)[0][1] & select.POLLHUP:
        pass
    return kind(client)
def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
print(seen(lambda sock: sock.shutdown(socket.SHUT_WR), lambda sock: sock.close()), seen(lambda sock: None, reset))
"""


def test_hangups_that_stay(mode):
    """Both directions have ended, or the connection was reset."""
    assert run(mode, HANGUPS) == expected(mode)


def test_an_end_is_killed(mode):
    """At random moments: the other one sees the end, and a server serves on."""
    chance = random.Random(KILLS)
    server = test_pair.start_server(mode, "epoll")
    assert " ".join(test_pair.kinds_of(mode.start([test_pair.PAIRING, "ask", test_pair.port_of(server), "first"]))) == expected(mode)
    files = test_pair.files_of(server)
    for number in range(KILLS):
        client = mode.start([test_pair.PAIRING, "ask", test_pair.port_of(server), "word"])
        until = time.monotonic() + chance.uniform(0.001, 0.02)
        while time.monotonic() < until:
            pass
        if number % 2:
            client.kill()
            program.wait_until(lambda: test_pair.files_of(server) <= files, f"end of client {number}", SECONDS_MAX)
        else:
            server.kill()
            assert client.wait_exit(SECONDS_MAX) in (0, 2), client.report()
            mode.forget(server)
            server = test_pair.start_server(mode, "epoll")
            kinds = test_pair.kinds_of(mode.start([test_pair.PAIRING, "ask", test_pair.port_of(server), "first"]))
            assert " ".join(kinds) == expected(mode)
            files = test_pair.files_of(server)
        mode.forget(client)


DUPLICATES = """
client = socket.socket()
others = [client.dup(), socket.socket(fileno=os.dup2(client.fileno(), 50))]
listener = listening()
accepting = in_thread(listener.accept)
(client if sys.argv[1] == "first" else others[1]).connect(listener.getsockname())
server = accepting()[0]
print(*{kind(sock) for sock in (client, server, *others)}, flush=True)
for sock in (client, *others):
    exchange(sock, server)
"""


@pytest.mark.parametrize("which", ["first", "last"])
def test_duplicates_that_are_older_than_the_connection(mode, which):
    """All of them are the pair."""
    assert run(mode, DUPLICATES, which) == expected(mode).split()[0]


DUPLICATE_MEANWHILE = """
client = socket.socket()
listener = listening()
connecting = in_thread(lambda: client.connect(listener.getsockname()))
connecting.await_sleep()
copying = in_thread(lambda: LIBC.dup(client.fileno()))
copying.await_sleep("futex")
server = listener.accept()[0]
connecting()
copy = socket.socket(fileno=copying())
print(*{kind(sock) for sock in (client, server, copy)}, flush=True)
for sock in (client, copy):
    exchange(sock, server)
"""


def test_a_duplicate_that_is_made_while_the_connection_is(mode):
    """The kernel has made it of the TCP socket, and it is the pair."""
    assert run(mode, DUPLICATE_MEANWHILE) == expected(mode).split()[0]


SHARED = """
client = socket.socket()
listener = listening()
ready, go = os.pipe()
child = os.fork()
if (child == 0) == (sys.argv[1] == "parent"):
    os.read(ready, 1)
    client.sendall(b"word")
    os._exit(0) if child == 0 else os.waitpid(child, 0)
    sys.exit()
accepting = in_thread(listener.accept)
client.connect(listener.getsockname())
server = accepting()[0]
server.settimeout(10)
print(kind(client), kind(server), flush=True)
os.write(go, b"x")
assert server.recv(4, socket.MSG_WAITALL) == b"word"
if child:
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("which", ["parent", "child"])
def test_two_processes_have_the_socket_before_it_is_connected(mode, which):
    assert run(mode, SHARED, which) == "tcp tcp"
