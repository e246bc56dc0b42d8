# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The ways by which two ends in mode `auto` come to the kernel's pair, and do not; and what uses a pair. Each script runs with the
kernel's TCP alone as well, which proves it. It ends with what both ends are, where that is no matter of chance."""

import os
import pathlib
import sys

import conftest
import program
import pytest

SECONDS_MAX = program.SECONDS_MAX
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


# As the server of a passive FTP transfer, which accepts when the client has asked for the file behind its connect.
NOBODY_WAITS = """
import subprocess, time
listener = socket.create_server(("127.0.0.1", 0))
in_child = sys.argv[1] in ("fork", "exec")
if sys.argv[1] == "fork" and not os.fork():
    server = listener.accept()[0]
    server.sendall(server.recv(5, socket.MSG_WAITALL) + kind(server).encode())
    os._exit(0)
if sys.argv[1] == "exec":
    listener.set_inheritable(True)
    subprocess.Popen([sys.executable, "-c", "import sys; sys.path[:0] = [sys.argv[2]]; from pair_head import *; listener = socket.socket(fileno=int(sys.argv[1])); "
                      "server = listener.accept()[0]; server.sendall(server.recv(5, socket.MSG_WAITALL) + kind(server).encode())",
                      str(listener.fileno()), sys.path[0]], close_fds=False)
address = listener.getsockname()
if in_child:
    listener.close()  # a process of one thread makes no offer to itself
else:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
client = socket.socket()
began = time.monotonic()
client.connect(address)
assert in_child or time.monotonic() - began < 10  # of the 20 s that connect waits for an accept here
client.sendall(b"first")
if in_child:
    assert client.recv(5, socket.MSG_WAITALL) == b"first"
    print(kind(client), client.recv(4, socket.MSG_WAITALL).decode().strip())
else:
    server = listener.accept()[0]
    assert server.recv(5, socket.MSG_WAITALL) == b"first"
    exchange(client, server)
    print(kind(client), kind(server))
"""


def test_a_listener_that_no_call_waits_for(mode):
    assert run(mode, NOBODY_WAITS, "nobody") == "tcp tcp"


@pytest.mark.parametrize("way", ["fork", "exec"])
def test_a_listener_that_a_child_waits_for(mode, way):
    assert run(mode, NOBODY_WAITS, way).split()[0] == expected(mode).split()[0]


CONNECT_UNSEEN = """
listener = listening()
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
    listener = listening()
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


OWN_LISTENER = """
listener = listening()
client = socket.socket()
client.connect(listener.getsockname())
client.sendall(b"before")
server = listener.accept()[0]
assert server.recv(6, socket.MSG_WAITALL) == b"before"
exchange(client, server)
print(kind(client), kind(server))
"""


def test_one_thread_connects_to_itself(mode):
    assert run(mode, OWN_LISTENER) == "tcp tcp"


OVERFLOW = """
import select, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1)
attended(listener)
def send_one(client, number):
    select.select([], [client], [], 30)
    client.setblocking(True)
    client.sendall(bytes([number]))
clients = []
for number in range(8):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
    clients.append(client)
listener.settimeout(20)
for number, client in enumerate(clients):
    threading.Thread(target=send_one, args=(client, number), daemon=True).start()
def serve():
    served = 0
    while served < 8:
        server = listener.accept()[0]
        server.settimeout(20)
        server.sendall(server.recv(1))
        served += 1
        kept.append(server)
kept = []
serving = in_thread(serve)
for number, client in enumerate(clients):
    select.select([client], [], [], 30)
    assert client.recv(1) == bytes([number]), number
serving()
print("ok")
"""


@pytest.mark.parametrize("ms", ["0", "10"])
def test_backlog_overflows(mode, ms):
    assert run(mode, OVERFLOW, ANYWARP_SOCKETS_PAIR_MS=ms) == "ok"


LISTENER_ENDS = """
def ends(how):
    listener = listening()
    client = socket.socket()
    connecting = in_thread(lambda: client.connect_ex(listener.getsockname()))
    connecting.await_sleep()
    how(listener)
    assert connecting() == 0
    client.settimeout(20)
    try:
        return client.recv(1)
    except ConnectionResetError:
        return "reset"
    except OSError as error:
        return error.errno
print(ends(lambda listener: listener.close()))
"""


def test_listener_closes_with_an_offer_open(mode):
    """The kernel resets what was not accepted."""
    assert run(mode, LISTENER_ENDS) == "reset"


REFUSED = """
import errno
listener = listening()
address = listener.getsockname()
listener.close()
for blocks in (True, False):
    client = socket.socket()
    client.setblocking(blocks)
    error = client.connect_ex(address)
    if error == errno.EINPROGRESS:
        import select
        select.select([], [client], [], 10)
        error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    assert error == errno.ECONNREFUSED, error
again = listening(address)
accepting = in_thread(again.accept)
client = socket.socket()
assert client.connect_ex(("127.0.0.1", 1)) == errno.ECONNREFUSED
client.connect(address)
server = accepting()[0]
exchange(client, server)
print(kind(client), kind(server))
"""


def test_refused_and_connected_again(mode):
    assert run(mode, REFUSED) == expected(mode)


SAME_PORT = """
import errno, struct, time
listener = listening()
first = socket.socket()
first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
first.bind(("127.0.0.1", 0))
port = first.getsockname()[1]
for round in range(60):
    client = first if round == 0 else socket.socket()
    if round:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.bind(("127.0.0.1", port))
    accepting = in_thread(listener.accept) if sys.argv[1] == "served" or round == 59 else None
    client.connect(listener.getsockname())
    word = b"%03d" % round
    client.sendall(word)
    if accepting:
        server = accepting()[0]
        server.settimeout(10)
        try:
            got = server.recv(3, socket.MSG_WAITALL)
        except OSError:
            got = b""
        while sys.argv[1] != "served" and got != word:
            assert got < word, got
            listener.settimeout(10)
            server = listener.accept()[0]
            server.settimeout(10)
            try:
                got = server.recv(3, socket.MSG_WAITALL)
            except OSError:
                got = b""
        assert got == word, (got, word)
        server.sendall(word)
        assert client.recv(3, socket.MSG_WAITALL) == word
        assert kind(client) == kind(server)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
print("ok")
"""


@pytest.mark.parametrize("ms, how", [("20000", "served"), ("0", "queued")])
def test_source_port_is_bound_again_at_once(mode, ms, how):
    """The connection before was reset, and may still be in the listener's queue."""
    assert run(mode, SAME_PORT, how, ANYWARP_SOCKETS_PAIR_MS=ms) == "ok"


SIMULTANEOUS = """
import errno
for _ in range(300):
    one, other = socket.socket(), socket.socket()
    for sock in (one, other):
        sock.bind(("127.0.0.1", 0))
    gate = threading.Barrier(2)
    def connect(sock, to):
        gate.wait()
        return sock.connect_ex(to.getsockname())
    connecting = in_thread(lambda: connect(other, one))
    if [connect(one, other), connecting()] == [0, 0]:
        exchange(one, other)
own = socket.socket()
own.bind(("127.0.0.1", 0))
own.connect(own.getsockname())
exchange(own, own)
print("ok", kind(own))
"""


def test_simultaneous_open(mode):
    """Two sockets connect to each other, and one to itself."""
    assert run(mode, SIMULTANEOUS) == "ok tcp"


UNSEEN = """
import ctypes, subprocess, time
listener = listening()
client = socket.socket()
def accept_by_child():
    child = "import socket, sys; s = socket.socket(fileno=int(sys.argv[1])).accept()[0]; s.sendall(s.recv(5))"
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run([sys.executable, "-c", child, str(listener.fileno())], pass_fds=[listener.fileno()], env=env, check=True)
def accept_raw():
    server = socket.socket(fileno=raw("accept", listener.fileno(), None, None))
    server.sendall(server.recv(5))
def accept_deep():
    deep = ctypes.CDLL(sys.argv[2], mode=os.RTLD_DEEPBIND | os.RTLD_NOW | os.RTLD_LOCAL)
    server = socket.socket(fileno=deep.accept_deep(listener.fileno()))
    server.sendall(server.recv(5))
serving = in_thread({"child": accept_by_child, "raw": accept_raw, "deep": accept_deep}[sys.argv[1]])
began = time.monotonic()
client.connect(listener.getsockname())
late = time.monotonic() - began
client.sendall(b"hello")
assert client.recv(5, socket.MSG_WAITALL) == b"hello"
serving()
assert late < 5, late
print(kind(client))
"""


@pytest.mark.parametrize("how", ["child", "raw", "deep"])
def test_accept_that_no_wrapper_sees(mode, how):
    """The connection is TCP, and connect late by no more than it may be."""
    assert run(mode, UNSEEN, how, conftest.BUILD / "tests" / "deep.so", ANYWARP_SOCKETS_PAIR_MS="10") == "tcp"


PREFORK = """
import select, signal
def listen():
    listener = socket.socket()
    if sys.argv[1] == "reuseport":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(256)
    return listener
def serve(listener):
    while True:
        sock = listener.accept()[0]
        word = sock.recv(100)
        sock.sendall(word + b" %s %d" % (kind(sock).encode(), os.getpid()))
        sock.close()
port = 0
listener = listen()
port = listener.getsockname()[1]
reuse = sys.argv[1] == "reuseport"
listeners = [listener] + [listen() for _ in range(3 if reuse else 0)]
children = []
for number in range(4):
    children.append(os.fork())
    if not children[-1]:
        for other in listeners:
            if reuse and other is not listeners[number]:
                other.close()
        serve(listeners[number] if reuse else listener)
for each in listeners:
    each.close()
def ask(number):
    sock = socket.create_connection(("127.0.0.1", port))
    word = b"client %d" % number
    sock.sendall(word)
    sock.settimeout(30)
    got = b""
    while part := sock.recv(100):
        got += part
    assert got.startswith(word + b" "), (got, word)
    return got.split()[2].decode(), got.split()[3], kind(sock)
kinds, servers = set(), set()
for first in range(0, 200, 20):
    for own, server, theirs in [ask() for ask in [in_thread(lambda number=number: ask(number)) for number in range(first, first + 20)]]:
        kinds |= {own, theirs}
        servers.add(server)
assert len(servers) > 1
for child in children:
    os.kill(child, signal.SIGKILL)
print(*kinds)
"""


@pytest.mark.parametrize("how", ["fork", "reuseport"])
def test_processes_accept_on_one_port(mode, how):
    """Each client is answered by the process that has accepted it."""
    assert run(mode, PREFORK, how) == expected(mode, "pair").split()[0]


SQUATTED = """
import struct, subprocess, time
HOLD = "import socket, sys; s = socket.socket(socket.AF_UNIX, int(sys.argv[2])); s.bind(chr(0) + sys.argv[1]); int(sys.argv[2]) == 1 and s.listen(); print(flush=True); sys.stdin.read()"
def squat(name, kind):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, name, str(kind)], user=65534, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    return holder
holders = []
client = socket.socket()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
if sys.argv[1] == "offer":
    name = "anywarp-offer:" + os.fstat(client.fileno()).st_ino.to_bytes(8, sys.byteorder).hex()
    holders.append(squat(name, 1))
else:
    port = listener.getsockname()[1].to_bytes(2, "big")
    name = "anywarp-listener:" + (os.geteuid().to_bytes(4, sys.byteorder) + bytes(10) + b"\\xff\\xff\\x7f\\0\\0\\1" + port).hex()
    holders.append(squat(name, 2))
    client = socket.socket()  # it is younger than the fork
listener.listen()
attended(listener)
accepting = in_thread(listener.accept)
client.connect(listener.getsockname())
server = accepting()[0]
exchange(client, server)
print(kind(client), kind(server))
for holder in holders:
    holder.kill()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("what", ["offer", "listener"])
def test_strangers_have_the_names(mode, what):
    """An offer's costs the pair; a listener's costs nothing."""
    assert run(mode, SQUATTED, what) == (expected(mode) if what == "listener" else "tcp tcp")


TWO_USERS = """
import encodings.idna
listener = listening()
ready, go = os.pipe()
if not os.fork():
    os.read(ready, 1)
    os.setuid(65534)
    client = socket.create_connection(listener.getsockname())
    client.sendall(kind(client).encode())
    assert client.recv(3) == b"end"
    os._exit(0)
os.write(go, b"x")
server = listener.accept()[0]
theirs = server.recv(10).decode()
server.sendall(b"end")
assert os.wait()[1] == 0
print(theirs, kind(server))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_two_users(mode):
    assert run(mode, TWO_USERS) == "tcp tcp"


FEW_FDS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
fill = [os.dup(0) for _ in range(int(sys.argv[1]))]
connections = []
for _ in range(int(sys.argv[2])):
    connections.append(connected())
    exchange(*connections[-1][1:])
    assert kind(connections[-1][1]) == kind(connections[-1][2])
print(kind(connections[0][1]))
"""


@pytest.mark.parametrize("fill, count, kinds", [(0, 5, "pair"), (35, 5, "tcp")])
def test_few_numbers(mode, fill, count, kinds):
    """A program with half of its numbers in use gets no pair."""
    assert run(mode, FEW_FDS, fill, count) == (kinds if mode.name == "pair" else "tcp")


LOWERED = """
import resource
client = socket.socket()
high = os.dup2(client.fileno(), 200)
listener = listening()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
accepting = in_thread(listener.accept)
client.connect(listener.getsockname())
server = accepting()[0]
exchange(client, server)
other = socket.socket(fileno=high)
exchange(other, server)
print(kind(client) == kind(server) == kind(other))
"""


def test_number_beyond_the_limit(mode):
    """dup3(2) has no place for it any more."""
    assert run(mode, LOWERED) == "True"
