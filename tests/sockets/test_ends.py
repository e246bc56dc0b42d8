# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ends that are killed, sharers that are killed, crowds. Who survives sees the end or an error in time,
and every octet before it is right (mob.c checks)."""

import contextlib
import os
import pathlib
import random
import re
import resource
import signal
import socket
import sys

import conftest
import program
import pytest

MOB = conftest.BUILD / "tests" / "mob"
SEED = int(os.environ.get("ANYWARP_SEED", random.SystemRandom().randrange(1 << 30)))
KILLS = int(os.environ.get("ANYWARP_KILLS", 3 if conftest.SANITIZER else 12))
LIFE_US_MAX = 60000
SECONDS_MAX = 30 * program.SLOWNESS
CROWD = 4096
# What the library's own process has for a connection: its TCP socket, its end of the program's pair, an event
# channel and a completion channel; and for itself.
FDS_EACH, FDS_OWN = 4, 64
ENDED = r"(end|reset|pipe)$"


@pytest.fixture
def rng(request):
    print(f"seed {SEED}")
    return random.Random(f"{SEED} {request.node.name}")


class Server:
    def __init__(self, mode, **env):
        self.program = mode.start([MOB, "serve"], **env)
        self.port = int(self.program.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])

    def lines(self, pattern):
        return re.findall(f"^{pattern}", self.program.output(), re.M)

    def wait_lines(self, pattern, count):
        self.program.wait_until(lambda: len(self.lines(pattern)) >= count,
                                f"{count} lines '{pattern}'", SECONDS_MAX)


def serve_one(mode, server):
    client = mode.start([MOB, "echo", server.port])
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()


@pytest.mark.parametrize("role,other", [("flood", "sink"), ("sink", "flood")])
def test_client_is_killed(mode, rng, role, other):
    server = Server(mode)
    for count in range(1, KILLS + 1):
        life = 1 + rng.randrange(LIFE_US_MAX)
        client = mode.start([MOB, role, server.port, "--die-after-us", life])
        assert client.wait_exit(SECONDS_MAX) == -signal.SIGKILL, client.report()
        # It may have died before it said what it wanted.
        served = len(server.lines("serving "))
        server.wait_lines(rf"{other} \d+ {ENDED}", served)
        mode.forget(client)
    assert not server.lines(".*wrong"), server.program.report()
    serve_one(mode, server)


@pytest.mark.parametrize("role", ["flood", "sink"])
def test_server_is_killed(mode, rng, role):
    server = Server(mode)
    for count in range(1, KILLS + 1):
        client = mode.start([MOB, role, server.port])
        server.wait_lines("serving ", count)
        with pytest.raises(Exception, match="did not end"):
            client.wait_exit(rng.randrange(LIFE_US_MAX) / 1000000)
        os.kill(int(server.lines(r"serving (\d+)")[-1]), signal.SIGKILL)
        assert client.wait_exit(SECONDS_MAX) == 0, client.report()
        assert re.search(rf"^{role} \d+ {ENDED}", client.output(), re.M), client.report()
        mode.forget(client)
    serve_one(mode, server)


# Listens, and accepts nobody.
DEAF = """import signal, socket
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
signal.pause()
"""
# Writes once the fifo is opened.
WRITER = """import errno, socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
open(sys.argv[2]).close()
try:
    connection.send(b"x")
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
"""


def test_server_is_killed_before_it_accepts(mode, tmp_path):
    """The first write gets the reset, as over TCP, although the library has written before."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    server = mode.start([sys.executable, "-c", DEAF])
    port = int(server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])
    client = mode.start([sys.executable, "-c", WRITER, port, fifo])
    client.wait_output("connected", SECONDS_MAX)
    server.kill()
    client.wait_until(lambda: not program.is_listening(client.pid, port), "no listener", SECONDS_MAX)
    fifo.write_text("")
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert "ECONNRESET" in client.output(), client.report()


def proxies_of(mark):
    """The processes that carry connections for a program that was started with mark."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if ((process / "comm").read_text() == "anywarp-proxy\n"
                    and f"MARK={mark}".encode() in (process / "environ").read_bytes().split(b"\0")):
                yield int(process.name)


# A client that connects and closes, without a wait for the peer.
CLOSER = """
import socket, struct, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
"""


def test_client_closes_before_the_reply(only_iwarp):
    """A server that never answers the Request of a client's proxy sees the client's end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS_MAX)
        client = only_iwarp.start([sys.executable, "-c", CLOSER, listener.getsockname()[1]], ANYWARP_SOCKETS_RECORD="off")
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionResetError):
            connection.settimeout(SECONDS_MAX)
            while connection.recv(4096):
                pass
        assert client.wait_exit(SECONDS_MAX) == 0, client.report()


def test_proxy_is_killed(only_iwarp, tmp_path):
    """No clean end where octets are lost: of a connection that the proxy carries."""
    server = Server(only_iwarp)
    client = only_iwarp.start([MOB, "sink", server.port], MARK=str(tmp_path),
                              ANYWARP_SOCKETS_RECORD="off")
    server.wait_lines("serving ", 1)
    client.wait_until(lambda: list(proxies_of(tmp_path)), "a proxy", SECONDS_MAX)
    for proxy in proxies_of(tmp_path):
        os.kill(proxy, signal.SIGKILL)
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert re.search(r"^sink \d+ reset$", client.output(), re.M), client.report()
    serve_one(only_iwarp, server)


@pytest.mark.skipif(tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 12),
                    reason="the kernel gives all threads one slice")
def test_proxy_has_a_short_slice(only_proxy, tmp_path):
    """It runs when it wakes, also where a busy program has the processor."""
    server = Server(only_proxy, MARK=str(tmp_path))
    serve_one(only_proxy, server)
    server = server.program
    pid, = server.wait_until(lambda: list(proxies_of(tmp_path)), "a proxy", SECONDS_MAX)

    def slice_ns():
        told = re.search(r"^se\.slice *: *(\d+)$", pathlib.Path(f"/proc/{pid}/sched").read_text(), re.M)
        return told and int(told[1])

    if not slice_ns():
        pytest.skip("the kernel does not tell slices")
    server.wait_until(lambda: slice_ns() == 100_000, "a short slice", SECONDS_MAX)


# Prints what a client sends, and how the stream ends.
TELLER = """import socket
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
try:
    while piece := connection.recv(4096):
        print(piece.decode(), flush=True)
    print("end", flush=True)
except ConnectionResetError:
    print("reset", flush=True)
"""
# Hands its connection to a program without the library. Once the fifo is opened, a parent that stays writes.
HANDER = """import errno, socket, subprocess, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.send(b"parent")
connection.recv(0)
child = subprocess.Popen(["/bin/sh", "-c", "echo child; exec sleep 1000"], stdout=connection, env={})
if sys.argv[3] == "leaves":
    connection.close()
print("handed", flush=True)
open(sys.argv[2]).close()
if sys.argv[3] == "stays":
    try:
        connection.send(b"parent")
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
child.kill()
"""


@pytest.mark.parametrize("parent", ["leaves", "stays"])
def test_proxy_of_a_record_is_killed(only_iwarp, tmp_path, parent):
    """No clean end, and no process goes on over the gap, where the proxy may have had bytes of a record."""
    mode = only_iwarp
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    server = mode.start([sys.executable, "-c", TELLER])
    port = server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1]
    client = mode.start([sys.executable, "-c", HANDER, port, fifo, parent], MARK=str(tmp_path))
    client.wait_output("handed", SECONDS_MAX)
    server.wait_output("child", SECONDS_MAX)
    proxies = list(proxies_of(tmp_path))
    assert proxies
    for proxy in proxies:
        os.kill(proxy, signal.SIGKILL)
        client.wait_until(lambda: proxy not in proxies_of(tmp_path), "no proxy", SECONDS_MAX)
    fifo.write_text("")
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert parent == "leaves" or "ECONNRESET" in client.output(), client.report()
    assert server.wait_exit(SECONDS_MAX) == 0, server.report()
    assert "reset" in server.output(), server.report()


# Writes all at once to a client that has said something, and stays.
GIVER = """import signal, socket
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
connection.recv(1)
connection.sendall(b"given" * 5000)
print("written", flush=True)
signal.pause()
"""
# Reads to the end once the fifo is opened.
TAKER = """import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.send(b"x")
open(sys.argv[2]).close()
got = b""
while piece := connection.recv(65536):
    got += piece
assert got == b"given" * 5000, len(got)
"""


@pytest.mark.parametrize("record", ["on", "off"])
def test_all_are_asked_to_end(only_iwarp, tmp_path, record):
    """As a service manager does: SIGTERM to the program and to what carries its connections. TCP delivers."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    giver = only_iwarp.start([sys.executable, "-c", GIVER], MARK=str(tmp_path), ANYWARP_SOCKETS_RECORD=record)
    port = giver.wait_output(r"port (\d+)\n", SECONDS_MAX)[1]
    taker = only_iwarp.start([sys.executable, "-c", TAKER, port, fifo])
    giver.wait_output("written\n", SECONDS_MAX)
    proxies = list(proxies_of(tmp_path))
    assert bool(proxies) == (record == "off")  # a record needs none
    for pid in [*proxies, giver.process.pid]:
        os.kill(pid, signal.SIGTERM)
    assert giver.wait_exit(SECONDS_MAX) == -signal.SIGTERM, giver.report()
    fifo.write_text("")
    assert taker.wait_exit(SECONDS_MAX) == 0, taker.report()


@pytest.mark.parametrize("victim", [0, 1], ids=["parent", "child"])
def test_sharer_is_killed(mode, victim):
    """Two processes write to one connection; when one is killed the other goes on, and when that one
    is, too, the peer sees the end."""
    server = Server(mode)
    client = mode.start([MOB, "records", server.port])
    writers = list(map(int, client.wait_output(r"writers (\d+) (\d+)\n").groups()))
    for writer in (0, 1):
        server.wait_lines(f"hundred {writer}", 1)
    os.kill(writers[victim], signal.SIGKILL)
    survivor = 1 - victim
    # Of the first hundred that comes, the victim's end may be in the middle; the next is the survivor's alone.
    server.wait_lines(f"hundred {survivor}", len(server.lines(f"hundred {survivor}")) + 2)
    os.kill(writers[survivor], signal.SIGKILL)
    server.wait_lines(rf"records \d+ \d+ {ENDED}", 1)


def fds_allowed():
    """The hard limit of open files, which root may raise."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, max(hard, FDS_EACH * CROWD + FDS_OWN)))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="a sanitizer needs too much memory for it")
def test_crowd(mode):
    """4,096 connections between two processes at once."""
    count = min(CROWD, (fds_allowed() - FDS_OWN) // FDS_EACH)
    server = Server(mode)
    client = mode.start([MOB, "crowd", server.port, count])
    assert client.wait_exit(3 * SECONDS_MAX) == 0, client.report()
    serve_one(mode, server)
    if count < CROWD:
        pytest.skip(f"only {count} of {CROWD} were tried, and well: raise the hard limit of open files")
