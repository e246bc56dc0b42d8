# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the kernel's TCP does beside the stream, and programs of strangers were seen to rely on: who keeps TIME_WAIT, how many connections
a limit of open files allows, how much an end takes before it blocks, what poll shows of a reset."""

import pathlib
import re
import signal
import sys
import time

import conftest
import pytest

SECONDS_MAX = conftest.program.SECONDS_MAX
KILLS = 4
FEW_FILES, FEW_CONNECTIONS = 64, 50
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="a sanitizer's processes have files and time of their own")


@pytest.fixture(params=["plain", "iwarp"])
def mode(request, tmp_path):
    yield from conftest.open_mode(request, tmp_path, request.param)


def run(mode, code, *argv):
    started = mode.start([sys.executable, "-c", code, *argv], ANYWARP_LOG="info")
    assert started.wait_exit(SECONDS_MAX) == 0, started.report()
    assert "is no record" not in started.output(), started.report()
    return started.output()


# The client closes first: a server that comes next needs no SO_REUSEADDR.
TIME_WAIT = """
import socket, threading
def listen(port):
    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener
listener = listen(0)
port = listener.getsockname()[1]
def serve():
    for _ in range(50):
        with listener.accept()[0] as sock:
            while data := sock.recv(100):
                sock.sendall(data)
thread = threading.Thread(target=serve)
thread.start()
for _ in range(50):
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"word")
        assert sock.recv(4, socket.MSG_WAITALL) == b"word"
thread.join()
listener.close()
listen(port)
"""


def test_time_wait_is_with_the_end_that_closes_first(mode):
    run(mode, TIME_WAIT)


# Server and client are one process: each connection has two fds of it.
FEW = """
import resource, socket, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
listener = socket.create_server(("127.0.0.1", 0))
kept = []
for turn in range(int(sys.argv[2]) // 2):
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    server.sendall(b"y")
    assert client.recv(1) == b"y"
    kept += client, server
"""


def test_few_files_are_for_the_programs_connections(mode):
    run(mode, FEW, FEW_FILES, FEW_CONNECTIONS)


# Both ends of a connection that has been used.
CONNECTED = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"x")
assert server.recv(1) == b"x"
"""
FILL = CONNECTED + """
client.setblocking(False)
taken = 0
try:
    while True:
        taken += client.send(bytes(65536))
except BlockingIOError:
    print("taken", taken)
"""


def test_as_much_is_under_way_as_in_tcp(mode, plain):
    taken = [int(re.search(r"taken (\d+)", run(each, FILL))[1]) for each in (plain, mode)]
    assert taken[1] >= 0.8 * taken[0], taken


# The client's close resets the connection, since it has not read all.
RESET = CONNECTED + """
import select
server.sendall(b"unread")
poll = select.poll()
poll.register(client, select.POLLIN)
assert poll.poll(10000)
client.close()
poll = select.poll()
poll.register(server, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
while not (events := poll.poll(10000)[0][1]) & select.POLLHUP:
    pass
print("events", events)
"""


def test_poll_shows_the_same_of_a_reset(mode, plain):
    events = [re.search(r"events (\d+)", run(each, RESET))[1] for each in (plain, mode)]
    assert events[0] == events[1]


# Linux delivers what comes behind shutdown(SHUT_RD).
SHUT = CONNECTED + """
server.shutdown(socket.SHUT_RD)
assert server.recv(1) == b""
client.sendall(b"word")
got = b""
while len(got) < 4:
    got += server.recv(4)
assert got == b"word"
"""


def test_bytes_come_behind_a_shutdown_for_reading(mode):
    run(mode, SHUT)


# Blocked before anything starts, so that none is missed.
SIGNALS = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])"

# A writer that blocks, since nobody reads, is killed; what its writes have returned for is delivered, and then the end.
WRITER = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.sendall(b"x")
sock.recv(1)
size, written = int(sys.argv[2]), 0
while True:
    sock.settimeout(None)
    print("written", written, flush=True)
    written += sock.send(bytes(size))
"""
READER = """
import os, signal, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
sock = listener.accept()[0]
assert sock.recv(1) == b"x"
sock.sendall(b"y")
signal.sigwait([signal.SIGUSR1])
got = 0
while data := sock.recv(65536):
    got += len(data)
print("got", got, flush=True)
"""


@pytest.mark.parametrize("size", [300, 4096, 100_000])
def test_writer_that_blocks_is_killed(mode, size):
    for _ in range(KILLS):
        reader = mode.start([sys.executable, "-c", SIGNALS + READER])
        port = reader.wait_output(r"port (\d+)\n", SECONDS_MAX)[1]
        writer = mode.start([sys.executable, "-c", WRITER, port, size])
        written = wait_blocked(writer)
        writer.kill()
        reader.process.send_signal(signal.SIGUSR1)
        assert reader.wait_exit(SECONDS_MAX) == 0, reader.report()
        got = int(re.search(r"got (\d+)", reader.output())[1])
        assert written <= got <= written + size, reader.report()


def wait_blocked(writer):
    """What its writes have returned for when it sleeps in one, as the kernel shows."""
    def asleep():
        before = writer.output()
        fields = pathlib.Path(f"/proc/{writer.process.pid}/stat").read_text().rpartition(")")[2].split()
        return before.endswith("\n") and fields[0] == "S" and before == writer.output() and before
    told, in_a_row = None, 0
    while in_a_row < 20:
        now = asleep()
        in_a_row = in_a_row + 1 if now and now == told else 0
        told = now
        time.sleep(0.005)
    return int(told.split()[-1])
