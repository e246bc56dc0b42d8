# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Peers that are not what the rule says, and peers that mean harm: plain servers for a client that is to
speak iWARP, plain clients for such a server, and the library's own Request with octets changed. The
program gets an error or the end, nothing of the start-up's octets, and the next peer is served."""

import array
import contextlib
import errno
import fcntl
import os
import pathlib
import random
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

import conftest
import iwarp
import pytest
import sockets_status
from test_ends import MOB, SECONDS_MAX, Server, rng, serve_one  # noqa: F401

NOBODY = 65534
PROXY_CONTROL, ORDER_FDS = 3, 33
RESET = struct.pack("ii", 1, 0)
# The start-up's time-out, and longer than it.
PATIENCE_SECONDS, SILENCE_SECONDS_MAX = 10, 45
REFUSED = r"cannot be iWARP with peer 127.0.0.1 port \d+: {}: .*--rule on.*--rule 'off remote=127.0.0.1'"
# A client that waits for its server.
WAITER = """
import errno, select, socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.sendall(b"hello")
how = sys.argv[2]
if how == "poll":
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    assert poll.poll()
elif how == "select":
    assert select.select([sock], [], [])[0]
elif how == "epoll":
    epoll = select.epoll()
    epoll.register(sock, select.EPOLLIN)
    assert epoll.poll()
try:
    sock.recv(1)
    sys.exit("it has received something")
except OSError as error:
    assert error.errno == errno.EPROTO
"""


def is_echoing(sock):
    while octets := sock.recv(4096):
        sock.sendall(octets)


def is_silent(sock):
    while sock.recv(4096):
        pass


def closes(sock):
    sock.recv(1)


def closes_unread(sock):
    sock.recv(1, socket.MSG_PEEK)


def greets(sock):
    sock.sendall(b"220 a plain service\r\n" * 10)
    is_silent(sock)


def resets(sock):
    sock.recv(1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def answers_half(sock):
    sock.recv(4096)
    sock.sendall(iwarp.KEY_REPLY[:9])


def rejects(sock):
    sock.recv(4096)
    sock.sendall(iwarp.start_frame(iwarp.KEY_REPLY, iwarp.CRC | iwarp.REJECT))
    is_silent(sock)


def accepts_without_sockets(sock):
    """An iWARP service, but not one of sockets."""
    sock.recv(4096)
    sock.sendall(iwarp.start_frame(iwarp.KEY_REPLY, iwarp.CRC))
    is_silent(sock)


@contextlib.contextmanager
def stranger(behaviour):
    """A plain server, for as many clients as come."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                sock = listener.accept()[0]
                with sock, contextlib.suppress(OSError):
                    behaviour(sock)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.mark.parametrize("behaviour", [
    is_echoing, closes, closes_unread, greets, resets, answers_half, rejects,
    accepts_without_sockets], ids=lambda behaviour: behaviour.__name__)
def test_server_is_none(only_iwarp, behaviour):
    """The client ends by itself, with an error, and has read no octet."""
    with stranger(behaviour) as port:
        client = only_iwarp.start([MOB, "echo", port])
        assert client.wait_exit(SILENCE_SECONDS_MAX) == 1, client.report()
        assert "wrong" not in client.output(), client.report()
        assert re.search(REFUSED.format(".*") + ".*--rule 'rsockets remote=127.0.0.1'", client.output()), client.report()


def test_server_is_silent(only_iwarp):
    """It is waited for so long, and no longer, whoever it is; the user is told what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS_MAX)
        client = only_iwarp.start([MOB, "echo", listener.getsockname()[1]])
        with listener.accept()[0] as sock:
            sock.settimeout(SECONDS_MAX)
            assert sock.recv(4096).startswith(iwarp.KEY_REQUEST)
            began = time.monotonic()
            assert client.wait_exit(SILENCE_SECONDS_MAX) == 1, client.report()
            assert time.monotonic() - began > PATIENCE_SECONDS - 1
    assert "wrong" not in client.output(), client.report()
    assert re.search(REFUSED.format("it has sent no MPA Reply within 10 s"), client.output()), client.report()


def test_server_is_silent_to_who_waits(only_iwarp):
    """By whatever call."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clients = [only_iwarp.start([sys.executable, "-c", WAITER, listener.getsockname()[1], how])
                   for how in ("recv", "poll", "select", "epoll")]
        for client in clients:
            assert client.wait_exit(SILENCE_SECONDS_MAX) == 0, client.report()
            assert client.output().count("cannot be iWARP") == 1, client.report()


def words():
    request = iwarp.start_frame(flags=iwarp.CRC, revision=2)
    return {
        "nothing": b"", "an octet": b"M", "http": b"GET / HTTP/1.0\r\n\r\n",
        "half a key": iwarp.KEY_REQUEST[:8], "a key": iwarp.KEY_REQUEST,
        "a reply": iwarp.start_frame(iwarp.KEY_REPLY), "a request of another": request,
        "a request with zeroes": iwarp.start_frame(private=bytes(100)),
        "a long request": iwarp.start_frame(private=bytes(512), private_length=65535),
        "noise": bytes(range(256)) * 64,
    }


def end_unless_reset(sock):
    """The server may have turned us away already."""
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError as error:
        assert error.errno == errno.ENOTCONN


@pytest.mark.parametrize("word", words())
@pytest.mark.parametrize("stays", [False, True], ids=["closes", "stays"])
def test_client_is_none(only_iwarp, word, stays):
    server = Server(only_iwarp)
    with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as sock:
        sock.sendall(words()[word])
        if not stays:
            end_unless_reset(sock)
        serve_one(only_iwarp, server)
    serve_one(only_iwarp, server)
    assert server.program.status() is None


def request_of(mode):
    """The first frame of a client of ours."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = mode.start([MOB, "echo", listener.getsockname()[1]])
        listener.settimeout(SECONDS_MAX)
        sock = listener.accept()[0]
        with sock:
            sock.settimeout(SECONDS_MAX)
            octets = b""
            while len(octets) < iwarp.START_OCTETS or len(octets) < whole(octets):
                octets += sock.recv(4096)
        client.wait_exit(SECONDS_MAX)
        mode.forget(client)
        return octets[:whole(octets)]  # a record's FPDUs may come at once


def whole(octets):
    return iwarp.START_OCTETS + struct.unpack(">H", octets[18:20])[0]


def say(port, octets, behind):
    """Says the octets; once answered says what is behind, in any case reads until the other ends it, which it does in time.
    Whether it was answered."""
    answered = False
    deadline = time.monotonic() + SECONDS_MAX
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(octets)
            if select.select([sock], [], [], 0.2)[0] and sock.recv(4096):
                answered = True
                sock.sendall(behind)
            end_unless_reset(sock)
            while sock.recv(65536):
                assert time.monotonic() < deadline, "the server sends without end"
    return answered


def random_fpdu(rng):
    """Right as an FPDU: what is in it is the server's to check."""
    opcode = rng.choice([iwarp.WRITE, iwarp.READ_REQUEST, iwarp.SEND, iwarp.SEND_SE, iwarp.IMMEDIATE,
                         iwarp.IMMEDIATE_SE, iwarp.TERMINATE, rng.randrange(16)])
    # Not 's', at which the server would send without end (mob.c).
    payload = rng.randbytes(rng.choice([0, 4, 8, 16, 28, rng.randrange(1400)])).replace(b"s", b"e")
    if opcode in (iwarp.WRITE, iwarp.READ_RESPONSE):
        return iwarp.fpdu(iwarp.tagged(opcode, rng.randrange(1 << 32), rng.randrange(1 << 64),
                                       payload))
    queue = {iwarp.READ_REQUEST: 1, iwarp.TERMINATE: 2}.get(opcode, 0)
    return iwarp.fpdu(iwarp.untagged(opcode, queue, rng.choice([1, 1, 2, 9]), payload))


ROUNDS = 20 if conftest.SANITIZER else 60


@pytest.fixture(params=["iwarp", "proxy"])
def each_way(request, tmp_path):
    yield from conftest.open_mode(request, tmp_path, request.param)


def test_client_means_harm(each_way, rng):  # noqa: F811
    """A Request of ours, whole or with an octet changed, then messages that no library sends. A Send that is right is a record's
    stream, and what it carries the program's to judge."""
    server = Server(each_way)
    request = request_of(each_way)
    answered = 0
    for turn in range(ROUNDS):
        octets = bytearray(request)
        if turn % 2:
            octets[rng.randrange(16, len(octets))] = rng.randrange(256)
        behind = b"".join(random_fpdu(rng) for _ in range(rng.randrange(12)))
        answered += say(server.port, bytes(octets), behind)
        if turn % 10 == 9:
            serve_one(each_way, server)
    assert answered >= ROUNDS // 4
    assert each_way.name == "iwarp" or not server.lines(".*wrong"), server.program.report()
    assert server.program.status() is None


def test_end_within_a_request(each_way):
    """Nobody waits for the rest of it."""
    server = Server(each_way)
    request = bytearray(request_of(each_way))
    request[18:20] = struct.pack(">H", 511)
    with socket.create_connection(("127.0.0.1", server.port), ECHO_SECONDS_MAX) as sock:
        sock.sendall(request)
        sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    serve_one(each_way, server)


# One thread for all clients, by whatever it waits; or one that accepts and tries a read, before another one waits.
LOOP = """
import errno, os, select, socket, sys, threading
how = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
clients = {}
epoll = select.epoll() if how not in ("poll", "select") else None
EDGE = select.EPOLLET
FLAGS = select.EPOLLIN | {"edge": EDGE, "threads": EDGE, "oneshot": select.EPOLLONESHOT}.get(how, 0)

def ready():
    if epoll:
        return [fd for fd, _ in epoll.poll()]
    fds = [listener.fileno(), *clients]
    if how == "select":
        return select.select(fds, [], [])[0]
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll()]

def serve(fd, is_registered=True):
    try:
        while octets := clients[fd].recv(4096):
            clients[fd].sendall(octets)
    except BlockingIOError:
        if how == "oneshot":
            epoll.modify(fd, FLAGS)
        return True
    except OSError as error:
        assert error.errno == errno.EPROTO
    if epoll and is_registered:
        epoll.unregister(fd)
    clients.pop(fd).close()
    return False

def take():
    client = listener.accept()[0]
    client.setblocking(False)
    clients[client.fileno()] = client
    if how == "threads" and not serve(client.fileno(), False):
        return
    if epoll:
        epoll.register(client, FLAGS)

def loop():
    while True:
        for fd in ready():
            take() if fd == listener.fileno() else serve(fd)

if how == "threads":
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
    threading.Thread(target=loop, daemon=True).start()
elif epoll:
    epoll.register(listener, select.EPOLLIN)
print("port", listener.getsockname()[1], flush=True)
while how == "threads":
    take()
loop()
"""


@contextlib.contextmanager
def loop(mode, how, **env):
    """Connects to a server of one thread."""
    server = mode.start([sys.executable, "-c", LOOP, how], **env)
    port = int(server.wait_output(r"port (\d+)\n").group(1))
    with contextlib.ExitStack() as socks:
        yield server, lambda: socks.enter_context(socket.create_connection(("127.0.0.1", port), ECHO_SECONDS_MAX))
        # Whoever took the reply to its key, and then is closed, resets an iWARP connection: the server may die of it.
        assert server.status() is None, server.report()


def expect(sock, octets):
    got = b""
    while len(got) < len(octets):
        came = sock.recv(len(octets) - len(got))
        assert came, got
        got += came
    assert got == octets


def expect_refusal(sock):
    """It gets no octet."""
    sock.settimeout(SILENCE_SECONDS_MAX)
    with contextlib.suppress(ConnectionResetError):
        assert sock.recv(1) == b""


ECHO_SECONDS_MAX = 8
LOOPS = ["level", "edge", "oneshot", "poll", "select"]


@pytest.mark.parametrize("how", [*LOOPS, "threads"])
def test_half_a_key_holds_nobody(only_iwarp, how):
    """The others are served meanwhile; what cannot become a Request is refused at once, and silence after a while."""
    half, request = iwarp.KEY_REQUEST[:6], request_of(only_iwarp)
    with loop(only_iwarp, how) as (server, dial):
        strangers = [dial() for _ in range(4)]
        for sock in strangers:
            sock.sendall(half)
        client = only_iwarp.start([sys.executable, "-c", ASKER, strangers[0].getpeername()[1]])
        assert client.wait_exit(ECHO_SECONDS_MAX) == 0, client.report() + server.report()
        strangers[0].sendall(b"!")
        expect_refusal(strangers[0])
        strangers[1].shutdown(socket.SHUT_WR)
        expect_refusal(strangers[1])
        assert not select.select([strangers[2]], [], [], 0)[0]
        strangers[2].sendall(request[len(half):])
        expect(strangers[2], iwarp.KEY_REPLY)
        expect_refusal(strangers[3])
        server.wait_output(REFUSED.format("its first bytes are no MPA Request"))
        server.wait_output(REFUSED.format("it has sent no MPA Request within 10 s"))


ASKER = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for word in (b"some", b"words"):
    sock.sendall(word)
    assert sock.recv(100) == word
"""


CROWD = 200 if conftest.SANITIZER else 1000


def test_silent_strangers_cost_nobody_anything(only_iwarp):
    """They are turned away together, and the others are served meanwhile."""
    with loop(only_iwarp, "level") as (server, dial):
        strangers = [dial() for _ in range(CROWD)]
        client = only_iwarp.start([sys.executable, "-c", ASKER, strangers[0].getpeername()[1]])
        assert client.wait_exit(ECHO_SECONDS_MAX) == 0, client.report() + server.report()
        for sock in strangers:
            expect_refusal(sock)


def fds_of_proxy(mark):
    """How many fds the proxy process of a program has that was started with a mark in its environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        process = pathlib.Path("/proc", pid)
        with contextlib.suppress(OSError):
            if (process / "comm").read_text(encoding="ascii") == "anywarp-proxy\n" and \
                    mark.encode() in (process / "environ").read_bytes():
                return len(os.listdir(process / "fd"))
    raise AssertionError("there is no proxy process")


HALF_OPEN, SOME = 50, 10


def test_half_open_clients_cost_their_sockets_alone(only_iwarp):
    """For each that the proxy process waits for it has the TCP socket and an end of a pair. One timer ends them all, the late ones, too."""
    mark = f"half-open-{os.getpid()}-{random.random()}"
    with loop(only_iwarp, "level", ANYWARP_SOCKETS_RECORD="off", MARK=mark) as (server, dial):
        def ask():
            client = only_iwarp.start([sys.executable, "-c", ASKER, strangers[0].getpeername()[1]])
            assert client.wait_exit(ECHO_SECONDS_MAX) == 0, client.report() + server.report()

        strangers = [dial()]
        ask()
        before = fds_of_proxy(mark)
        strangers += [dial() for _ in range(HALF_OPEN)]
        ask()
        assert 2 * HALF_OPEN - SOME < fds_of_proxy(mark) - before < 2 * HALF_OPEN + SOME
        for sock in strangers:
            expect_refusal(sock)


# Sets IWARP_MODE of a socket, which the rule alone would leave off, and becomes a program that uses it.
MODE_SETTER = """
import os, socket, sys
SOL_IWARP, IWARP_MODE, IWARP_ON = 0x6957, 1, 1
sock = socket.socket()
sock.setsockopt(SOL_IWARP, IWARP_MODE, IWARP_ON)
if sys.argv[2] == "0":
    sock.bind(("127.0.0.1", 0))
    sock.listen()
os.set_inheritable(sock.fileno(), True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], str(sock.fileno()), sys.argv[2]])
"""
ACCEPTER = """
import socket, sys
listener = socket.socket(fileno=int(sys.argv[1]))
print("port", listener.getsockname()[1], flush=True)
sock = listener.accept()[0]
assert sock.recv(4) == b"ping"
sock.sendall(b"pong")
assert sock.getsockopt(0x6957, 1) == 1
"""
CONNECTER = """
import socket, sys
sock = socket.socket(fileno=int(sys.argv[1]))
sock.connect(("127.0.0.1", int(sys.argv[2])))
sock.sendall(b"ping")
assert sock.recv(4) == b"pong"
assert sock.getsockopt(0x6957, 1) == 1
"""


def test_mode_of_the_program_outlives_exec(tmp_path):
    """A listener's, and an unconnected socket's."""
    off = conftest.Mode("pass", tmp_path)
    server = off.start([sys.executable, "-c", MODE_SETTER, ACCEPTER, 0])
    port = int(server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])
    client = off.start([sys.executable, "-c", MODE_SETTER, CONNECTER, port])
    assert client.wait_exit(SECONDS_MAX) == 0, off.reports()
    assert server.wait_exit(SECONDS_MAX) == 0, off.reports()
    off.close()


# A server that becomes another program, which looks whether it can give its proxy orders.
LOOK = """
import os, socket
kinds = []
for fd in os.listdir("/proc/self/fd"):
    try:
        kinds.append(socket.socket(fileno=os.dup(int(fd))).type)
    except OSError:
        pass
print("orders" if socket.SOCK_SEQPACKET in kinds else "no orders")
"""
BECOME = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
user = int(sys.argv[1])
if user != os.getuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
os.execv(sys.executable, [sys.executable, "-I", "-c", sys.argv[2]])
"""


@pytest.mark.parametrize("user", [os.getuid(), NOBODY])
def test_proxy_of_root_takes_no_orders_of_others(open_libraries, only_proxy, user):
    if user == NOBODY and os.getuid() != 0:
        pytest.skip("only root can become another user")
    run = only_proxy.start([sys.executable, "-I", "-c", BECOME, user, LOOK])
    assert run.wait_exit() == 0, run.report()
    assert run.output().strip() == ("no orders" if user == NOBODY else "orders"), run.report()


# A server that gives up its rights before, or behind, its first socket.
GIVE_UP = """
import encodings.idna, os, signal, socket, sys
def give_up():
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
if sys.argv[1] == "before":
    give_up()
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
if sys.argv[1] == "behind":
    child = os.fork()
    if child:
        sys.exit(os.wait()[1])
    give_up()
server = listener.accept()[0]
client.sendall(b"x")
server.recv(1)
client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
print("serves", os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")
@pytest.mark.parametrize("when", ["before", "behind"])
def test_status_of_who_was_root(open_libraries, only_proxy, when):
    run = only_proxy.start(["/usr/bin/python3", "-I", "-c", GIVE_UP, when, NOBODY])
    pid = run.wait_output(r"serves (\d+)\n")[1]

    def both():
        status = subprocess.run([conftest.BUILD / "bin" / "anywarp", "sockets", "--status", pid],
                                capture_output=True, text=True, check=True).stdout
        rows = sockets_status.rows(status)
        return rows if len(rows) > 1 else None

    rows = run.wait_until(both, "both ends in the status")  # the proxy may still be at its start
    assert len(rows) == 2
    assert {row.state for row in rows} == {"established"}
    assert {row.octets_out for row in rows} == {"0", "1"}


def test_proxy_takes_no_more_fds_than_an_order_has():
    """The message has room for one more by its padding. Whoever gives the proxy orders is its program, but a
    broken one is not to break the proxy, which may carry others' connections, nor to use up its files."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            proxy = subprocess.Popen([conftest.BUILD / "lib/anywarp-proxy"], close_fds=False, stderr=subprocess.PIPE,
                                      preexec_fn=lambda: os.dup2(theirs.fileno(), PROXY_CONTROL))
        for _ in range(3):
            socket.send_fds(ours, [b"no order"], [ours.fileno()] * (ORDER_FDS + 1))
        deadline = time.monotonic() + SECONDS_MAX
        while unread(ours) or len(os.listdir(f"/proc/{proxy.pid}/fd")) > ORDER_FDS:
            assert time.monotonic() < deadline, "the proxy has kept what nobody had ordered"
            select.select([], [], [], 0.01)
    errors = proxy.communicate(timeout=SECONDS_MAX)[1]
    assert proxy.returncode == 0, errors.decode()


def unread(sender):
    """Octets that the peer has not read yet."""
    octets = array.array("i", [0])
    fcntl.ioctl(sender, termios.TIOCOUTQ, octets)
    return octets[0]
