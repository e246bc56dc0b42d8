# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections that must be records beside the program's own TCP sockets, however loaded the machine: servers that poll, fork and exec, with ends that are killed, crowds, streams by a seed, and CPython's own tests."""

import os
import pathlib
import random
import re
import subprocess
import sys

import conftest
import program
import pytest
import test_cpython
import test_ends
import test_stream
from test_contract import CONTRACT, NO_RECORD
from test_ends import rng  # noqa: F401

HERE = pathlib.Path(__file__).parent
SECONDS_MAX = program.SECONDS_MAX
KILLS = int(os.environ.get("ANYWARP_KILLS", 6))
KILL_MS_MAX = 300
ENDS = ("an early end", "ConnectionResetError", "BrokenPipeError")  # what TCP shows of a peer that was killed

def test_what_is_no_switch(only_iwarp):
    run = only_iwarp.start([CONTRACT, "plain_calls"], ANYWARP_SOCKETS_RECORD="yes")
    assert run.wait_exit() == 0, run.report()
    assert "ANYWARP_SOCKETS_RECORD is 'yes': it must be on, off or tls; taken as on" in run.output(), run.report()


def start_behind(mode, library, script, *arguments, **environment):
    """Starts a script of Python with a library of the tests behind the one that is tested."""
    preload = f"{mode.environment()['LD_PRELOAD']} {conftest.BUILD}/tests/{library}"
    return mode.start(["env", f"LD_PRELOAD={preload}", sys.executable, "-c", script, *arguments], **environment)


# Both ends of a record in one process. Its argument is a port as that of Server.
CONNECTED = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"x")
assert server.recv(1) == b"x"
"""
# TCP takes a part of an FPDU (cut.c), and the program sends no more. Its end of the stream stands behind all that it has sent.
SHUT_BEHIND_A_PART = CONNECTED + """
import errno, threading
how = getattr(socket, sys.argv[2])
total = []
def read():
    got = 0
    while data := server.recv(65536):
        got += len(data)
    total.append(got)
    server.sendall(b"y")
reader = threading.Thread(target=read)
reader.start()
client.setblocking(False)
assert client.send(bytes(16000)) == client.send(bytes(16000)) == 16000
try:
    client.shutdown(3) # no direction: a send goes on
except OSError as error:
    assert error.errno == errno.EINVAL
more = 0
try:
    more = client.send(b"z")
except BlockingIOError:
    pass
client.shutdown(how)
try:
    client.send(b"z")
except BrokenPipeError:
    pass
else:
    raise AssertionError("a send behind the end")
client.setblocking(True)
assert client.recv(1) == (b"y" if how == socket.SHUT_WR else b"")
reader.join()
assert total == [32000 + more], total
"""


@pytest.mark.parametrize("how", ["SHUT_WR", "SHUT_RDWR"])
def test_shutdown_behind_a_part_of_an_fpdu(only_iwarp, how):
    run = start_behind(only_iwarp, "cut.so", SHUT_BEHIND_A_PART, program.free_port(), how)
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# TCP takes a part of an FPDU (cut.c), and the process that has written it ends, or leaves the connection, while TCP takes
# no more from it. Every byte of a write that has returned arrives, and behind the bytes the stream's end.
SERVE_ONE = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
server = listener.accept()[0]
assert server.recv(1) == b"x"
server.sendall(b"y")
"""
SEND_A_PART = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"x")
assert client.recv(1) == b"y"
client.setblocking(False)
assert client.send(bytes(16000)) == client.send(bytes(16000)) == 16000
client.setblocking(True)
"""
RECEIVE_ALL = SERVE_ONE + """
got, total = 0, int(sys.argv[2])
while got < total:
    data = server.recv(65536)
    assert data, got
    got += len(data)
server.shutdown(socket.SHUT_WR)
assert got == total and server.recv(1) == b""
"""
LEAVE_A_PART = conftest.AWAIT_SLEEP + SEND_A_PART + """
import os, signal, threading
def fork():
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    assert client.recv(1) == b""
def quick_exit():
    os._exit(0)
def close():
    client.close()
    os._exit(0)
def close_at_once():
    os.closerange(client.fileno(), client.fileno() + 1)
    os._exit(0)
def linger():
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\x0a\\0\\0\\0")
    client.close()
    os.kill(os.getpid(), signal.SIGKILL)
def execute():
    os.execv("/bin/true", ["true"])
def bequeath():
    os.set_inheritable(client.fileno(), True)
    os.execv(sys.executable, [sys.executable, "-c", "import os, sys; assert os.read(int(sys.argv[1]), 1) == b''",
                              str(client.fileno())])
def end():
    pass
def await_end():
    assert client.recv(1) == b""
def shut():
    client.shutdown(socket.SHUT_WR)
    await_end()
def shut_and_fork():
    client.shutdown(socket.SHUT_WR)
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    assert client.recv(1) == b""
    while os.path.exists(f"/proc/{sys.argv[3]}"): # the stream's end comes before this process's
        time.sleep(0.01)
def asleep_in(call, argument):
    thread = threading.Thread(target=call, args=(argument,), daemon=True)
    thread.start()
    await_sleep(f"/proc/self/task/{thread.native_id}", 20)
    return thread
def close_beside_reader():
    asleep_in(client.recv, 1)
    os.close(client.fileno())
    os._exit(0)
def replace_beside_writer():
    other, writer = os.memfd_create("other"), asleep_in(client.sendall, bytes(1000))
    os.dup2(other, client.fileno())
    writer.join()
    assert os.fstat(other).st_size == 0
    os._exit(0)
globals()[sys.argv[2]]()
"""


@pytest.mark.parametrize("way", ["end", "quick_exit", "close", "close_at_once", "close_beside_reader",
                                 "replace_beside_writer", "linger", "fork", "shut_and_fork", "execute", "bequeath"])
def test_part_of_an_fpdu_outlives_its_writer(only_iwarp, way):
    port = program.free_port()
    total = 33000 if way == "replace_beside_writer" else 32000
    server = only_iwarp.start([sys.executable, "-c", RECEIVE_ALL, port, total])
    server.wait_output("ready")
    client = start_behind(only_iwarp, "cut.so", LEAVE_A_PART, port, way, server.pid, ANYWARP_LOG="info")
    assert server.wait_exit(SECONDS_MAX) == 0, server.report() + client.report()
    client.wait_exit(SECONDS_MAX)
    assert NO_RECORD not in client.output(), client.report()


# TCP takes a part of an FPDU (cut.c), and the process gets no thread that could send the rest, or no fd for one. It sends no more:
# its peer answers the whole.
@pytest.mark.parametrize("way", ["await_end", "shut"])
def test_part_of_an_fpdu_without_threads(only_iwarp, way):
    port = program.free_port()
    server = only_iwarp.start([sys.executable, "-c", RECEIVE_ALL, port, 32000])
    server.wait_output("ready")
    client = start_behind(only_iwarp, "cut.so", LEAVE_A_PART, port, way, server.pid, ANYWARP_LOG="info", CUT_THREADS="1")
    assert server.wait_exit(SECONDS_MAX) == 0, server.report() + client.report()
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert NO_RECORD not in client.output(), client.report()


SEND_WITHOUT_FDS = """
import resource, socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"x")
assert client.recv(1) == b"y"
assert client.send(bytes(16000)) == 16000
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert client.send(bytes(16000)) == 16000
assert client.recv(1) == b""
"""


def test_part_of_an_fpdu_without_fds(only_iwarp):
    port = program.free_port()
    server = only_iwarp.start([sys.executable, "-c", RECEIVE_ALL, port, 32000])
    server.wait_output("ready")
    client = start_behind(only_iwarp, "cut.so", SEND_WITHOUT_FDS, port, ANYWARP_LOG="info")
    assert server.wait_exit(SECONDS_MAX) == 0, server.report() + client.report()
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    assert NO_RECORD not in client.output(), client.report()


# A signal comes while a call that is to wait looks for bytes or room (strike.c).
STRUCK = CONNECTED + """
import ctypes, signal
class Struck(Exception):
    pass
def handle(number, frame):
    raise Struck
signal.signal(signal.SIGUSR1, handle)
strike_next = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[2]), "strike_next")
client.setblocking(False)
filled = 0
try:
    while True:
        filled += client.send(bytes(65536))
except BlockingIOError:
    pass
client.setblocking(True)
for call in lambda: client.send(bytes(65536)), lambda: client.recv(1), lambda: client.recv(9, socket.MSG_WAITALL):
    strike_next.value = 1
    try:
        call()
    except Struck:
        continue
    raise AssertionError("not interrupted")
got = 0
while got < filled:
    got += len(server.recv(65536))
server.sendall(b"y")
assert got == filled and client.recv(1) == b"y"
"""


def test_signal_before_the_wait(only_iwarp):
    run = start_behind(only_iwarp, "strike.so", STRUCK, program.free_port(), conftest.BUILD / "tests" / "strike.so")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


def test_signals_of_a_runtime_that_calls_handlers_later(only_iwarp):
    server = only_iwarp.start([sys.executable, conftest.ROOT / "tests" / "sockets" / "echo_server.py", "epoll"])
    port = server.wait_output(r"port (\d+)")[1]
    preload = f"{conftest.SOCKETS} {conftest.BUILD / 'tests' / 'defer.so'}"
    run = only_iwarp.start(["env", f"LD_PRELOAD={preload}", conftest.BUILD / "tests" / "deferred", port])
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


@pytest.mark.parametrize("in_front", [False, True], ids=["behind", "in_front"])
def test_signals_under_the_thread_sanitizer(only_iwarp, in_front):
    """Behind the library it calls the library's handler; in front of it, it is called by the library."""
    struck = conftest.BUILD / "tests" / "struck"
    if not struck.exists():
        pytest.skip("no thread sanitizer here")
    linked = subprocess.run(["ldd", struck], capture_output=True, text=True, check=True).stdout
    runtime = re.search(r"=> (\S*libtsan\S*)", linked)[1] if in_front else ""
    server = only_iwarp.start([sys.executable, conftest.ROOT / "tests" / "sockets" / "echo_server.py", "epoll"])
    port = server.wait_output(r"port (\d+)")[1]
    # It does not know all functions that lock a mutex, and finds an unlock without a lock.
    preload = f"LD_PRELOAD={runtime} {conftest.SOCKETS}"
    run = only_iwarp.start(["env", preload, struck, port], TSAN_OPTIONS="report_bugs=0")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# A thread closes or replaces the fd while another thread's read is in the middle of an FPDU, between two system calls on that number (strike.c).
CLOSED_INSIDE = CONNECTED + """
import ctypes, os, threading
behind = ctypes.CDLL(sys.argv[2])
meet_fd, meeting, closed_inside = (ctypes.c_int.in_dll(behind, name) for name in ("meet_fd", "meeting", "closed_inside"))
def read():
    try:
        server.recv(1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass
def replace(fd):
    os.dup2(listener.fileno(), fd)
    os.close(fd)
for close in os.close, lambda fd: os.closerange(fd, fd + 1), replace:
    meeting.value, meet_fd.value = 0, server.fileno()
    reader = threading.Thread(target=read)
    reader.start()
    while not meeting.value:
        pass
    close(server.detach())
    reader.join()
    assert closed_inside.value == 0
    client.close()
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
    client.sendall(b"y")
    assert server.recv(1) == b"y"
"""


def test_close_waits_for_a_read_in_the_middle(only_iwarp):
    run = start_behind(only_iwarp, "strike.so", CLOSED_INSIDE, program.free_port(), conftest.BUILD / "tests" / "strike.so")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# A reset meets the library's first send of a connection, which a look begins: the look leaves the error to SO_ERROR or a read.
RESET_AT_THE_START = """
import ctypes, errno, select, socket, sys
reset_next = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[2]), "reset_next")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
for reads in False, True:
    client = socket.socket()
    client.setblocking(False)
    assert client.connect_ex(listener.getsockname()) == errno.EINPROGRESS
    reset_next.value = 1
    poll = select.poll()
    poll.register(client, select.POLLOUT)
    assert poll.poll()[0][1] & select.POLLHUP
    assert reset_next.value == 0
    if not reads:
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    else:
        try:
            client.recv(1)
        except ConnectionResetError:
            continue
        raise AssertionError("no error")
"""


def test_reset_at_the_start(only_iwarp):
    run = start_behind(only_iwarp, "strike.so", RESET_AT_THE_START, program.free_port(),
                       conftest.BUILD / "tests" / "strike.so")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# Two processes read one connection. The one that waits has seen a part of an FPDU (cut.c); the other one takes the rest. Fewer bytes than
# that rest are then for the one that waits.
SHARED_PART = conftest.AWAIT_SLEEP + SERVE_ONE + """
import os, select
got = 0
while got < 16000:
    got += len(server.recv(16000 - got))
told, tell = os.pipe()
child = os.fork()
if child == 0:
    while data := server.recv(65536):
        os.write(tell, len(data).to_bytes(4, "big"))
    os._exit(0)
def received():
    return int.from_bytes(server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)[128:136], sys.byteorder)
while received() < 16000 + 5000:
    pass
await_sleep(f"/proc/{child}", 100)
got = 0
while got < 16000:
    if select.select([told], [], [], 0)[0]:
        got += int.from_bytes(os.read(told, 4), "big")
        continue
    try:
        got += len(server.recv(16000, socket.MSG_DONTWAIT))
    except BlockingIOError:
        pass
server.send(b"z")
assert select.select([told], [], [], 10)[0], "the reader sleeps on"
assert os.read(told, 4) == bytes([0, 0, 0, 4])
"""
SEND_THE_LAST = SEND_A_PART + """
assert client.recv(1) == b"z"
client.sendall(b"last")
client.recv(1)
"""


def test_reader_beside_a_part_of_an_fpdu(only_iwarp):
    port = program.free_port()
    server = only_iwarp.start([sys.executable, "-c", SHARED_PART, port])
    server.wait_output("ready")
    start_behind(only_iwarp, "cut.so", SEND_THE_LAST, port)
    assert server.wait_exit(SECONDS_MAX) == 0, server.report()


# A record is iWARP already: it is refused, and goes on.
START_ON_A_RECORD = CONNECTED + """
import ctypes, errno
library = ctypes.CDLL(None, use_errno=True)
assert library.iwarp_start(client.fileno(), 1) == -1 and ctypes.get_errno() == errno.EOPNOTSUPP
client.sendall(b"more")
assert server.recv(4) == b"more"
"""


def test_a_record_is_not_extended(only_iwarp):
    run = only_iwarp.start([sys.executable, "-c", START_ON_A_RECORD, program.free_port()])
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()


# A child that is born while a thread waits, and closes what it has: nobody waits there, so that its end is an end.
FORK_BESIDE_READER = conftest.AWAIT_SLEEP + """
import os, socket, threading
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"x")
assert server.recv(1) == b"x"
got, (come, go) = [], os.pipe()
reader = threading.Thread(target=lambda: got.append(server.recv(10)))
reader.start()
await_sleep(f"/proc/self/task/{reader.native_id}", 3)
held, hold = os.pipe()
if os.fork() == 0:
    os.close(hold)
    server.close()
    client.close()
    os.write(go, b"!")
    os.read(held, 1)
    os._exit(0)
os.read(come, 1)
client.sendall(b"word")
reader.join()
assert got == [b"word"], got
server.close()
client.settimeout(10)
assert client.recv(1) == b""
"""


def test_fork_beside_a_reader(only_iwarp):
    run = only_iwarp.start([sys.executable, "-c", FORK_BESIDE_READER], ANYWARP_LOG="info")
    assert run.wait_exit() == 0, run.report()
    assert NO_RECORD not in run.output(), run.report()


class Server:
    def __init__(self, mode, way):
        self.mode = mode
        self.program = mode.start([sys.executable, HERE / "echo_server.py", way, program.free_port()], ANYWARP_LOG="info")
        self.port = int(self.program.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])

    def client(self, connections, octets):
        return self.mode.start([sys.executable, HERE / "echo_client.py", self.port, connections, octets],
                               ANYWARP_LOG="info")

    def serve(self, connections, octets):
        client = self.client(connections, octets)
        assert client.wait_exit(SECONDS_MAX) == 0, client.report() + self.program.report()
        assert NO_RECORD not in client.output() + self.program.output(), self.mode.reports()


@pytest.mark.parametrize("way,connections,octets",
                         [("epoll", 100, 200000), ("edge", 100, 200000), ("fork", 30, 200000), ("exec", 10, 200000)])
def test_echo(only_iwarp, way, connections, octets):
    Server(only_iwarp, way).serve(connections, octets)


@pytest.mark.parametrize("way", ["epoll", "edge", "fork", "exec"])
def test_client_is_killed(only_iwarp, rng, way):  # noqa: F811
    server = Server(only_iwarp, way)
    for _ in range(KILLS):
        client = server.client(8, 0)
        client.wait_output("connected", SECONDS_MAX)
        with pytest.raises(Exception, match="did not end"):
            client.wait_exit(rng.randrange(KILL_MS_MAX) / 1000)
        only_iwarp.forget(client)
    server.serve(8, 100000)


@pytest.mark.parametrize("way", ["epoll", "edge", "fork"])
def test_server_is_killed(only_iwarp, rng, way):  # noqa: F811
    for _ in range(KILLS):
        server = Server(only_iwarp, way)
        client = server.client(8, 0)
        client.wait_output("connected", SECONDS_MAX)
        with pytest.raises(Exception, match="did not end"):
            client.wait_exit(rng.randrange(KILL_MS_MAX) / 1000)
        server.program.kill()
        assert client.wait_exit(SECONDS_MAX) == 1, client.report()
        assert any(end in client.output() for end in ENDS), client.report()
        only_iwarp.forget(client)
        only_iwarp.forget(server.program)


@pytest.mark.parametrize("role,other", [("flood", "sink"), ("sink", "flood")])
def test_blocking_client_is_killed(only_iwarp, rng, role, other):  # noqa: F811
    test_ends.test_client_is_killed(only_iwarp, rng, role, other)


@pytest.mark.parametrize("role", ["flood", "sink"])
def test_blocking_server_is_killed(only_iwarp, rng, role):  # noqa: F811
    test_ends.test_server_is_killed(only_iwarp, rng, role)


@pytest.mark.parametrize("victim", [0, 1], ids=["parent", "child"])
def test_sharer_is_killed(only_iwarp, victim):
    test_ends.test_sharer_is_killed(only_iwarp, victim)


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="a sanitizer needs too much memory for it")
def test_crowd(only_iwarp):
    test_ends.test_crowd(only_iwarp)


def test_any_stream(only_iwarp):
    test_stream.test_stream(only_iwarp)


@pytest.mark.skipif(test_cpython.no_namespaces(), reason="no network namespaces of our own")
def test_of_cpython(only_iwarp):
    test_cpython.test_socket(only_iwarp)
