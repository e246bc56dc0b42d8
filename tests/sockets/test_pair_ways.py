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


OWN_LISTENER = """
listener = socket.create_server(("127.0.0.1", 0))
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
print("ok")
"""


@pytest.mark.parametrize("ms", ["0", "10"])
def test_backlog_overflows(mode, ms):
    assert run(mode, OVERFLOW, ANYWARP_SOCKETS_PAIR_MS=ms) == "ok"


LISTENER_ENDS = """
def ends(how):
    listener = socket.create_server(("127.0.0.1", 0))
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
listener = socket.create_server(("127.0.0.1", 0))
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
again = socket.create_server(address)
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
listener = socket.create_server(("127.0.0.1", 0))
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
met = 0
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
        met += 1
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
