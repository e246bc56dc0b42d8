# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A stranger begins to speak iWARP and says no more, for as long as the test runs. Whoever reads its connection
waits, as for any octets of TCP's, and can be interrupted; nobody else waits for the stranger: not who forks,
nor who closes, accepts or serves other connections."""

import contextlib
import signal
import socket
import sys
import time

import conftest
import iwarp
import pytest
from test_ends import SECONDS_MAX

# More than all take when nobody waits for the strangers, however loaded the machine; less than they would hold
# somebody, each of them for a fifth of a second or more. A sanitizer's processes take long to start.
STRANGERS, HELD_SECONDS_MAX = 15 if conftest.SANITIZER else 60, 10

SERVE = conftest.AWAIT_SLEEP + """
import os, signal, socket, subprocess, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
wakes, wake = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
wake.setblocking(False)
signal.set_wakeup_fd(wake.fileno())
signal.signal(signal.SIGUSR2, lambda *_: None)
print("port", listener.getsockname()[1], flush=True)
signal.sigwait([signal.SIGUSR1])

def read(sock):
    try:
        sock.recv(1)
    except OSError:
        pass

def begin_to_read(sock):
    thread = threading.Thread(target=read, args=[sock], daemon=True)
    thread.start()
    await_sleep(f"/proc/self/task/{thread.native_id}", 3)
    return thread

def fork():
    pid = os.fork()
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def forks_beside_who_reads(sock):
    begin_to_read(sock)
    fork()

def forks(sock):
    fork()

def spawns_beside_who_reads(sock):
    begin_to_read(sock)
    subprocess.run(["true"], check=True, pass_fds=[sock.fileno()])

def execs(sock):
    pid = os.fork()
    if not pid:
        sock.set_inheritable(True)
        os.execv("/bin/true", ["true"])
    assert os.waitpid(pid, 0)[1] == 0

def passes(sock):
    near, far = socket.socketpair()
    socket.send_fds(near, [b"x"], [sock.fileno()])

def interrupts_who_reads(sock):
    thread = begin_to_read(sock)
    signal.pthread_kill(thread.ident, signal.SIGUSR2)
    assert wakes.recv(1)[0] == signal.SIGUSR2

def closes(sock):
    sock.close()

def polls(sock):
    import select
    sock.setblocking(False)
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.poll(0)
    try:
        sock.recv(1)
    except BlockingIOError:
        pass

kept, do, count = [], globals()[sys.argv[1]], int(sys.argv[2])
began = time.monotonic()
for _ in range(count):
    sock = listener.accept()[0]
    kept.append(sock)
    do(sock)
print("held", time.monotonic() - began, flush=True)
# Who comes behind them is served.
client = listener.accept()[0]
client.sendall(client.recv(100))
client.close()
os._exit(0)
"""
WORDS = {
    "a key": iwarp.KEY_REQUEST,
    "half a key": iwarp.KEY_REQUEST[:9],
    "a front": iwarp.start_frame(private=bytes(40))[:iwarp.START_OCTETS],
    "nothing": b"",
}
DEEDS = ["forks_beside_who_reads", "forks", "spawns_beside_who_reads", "execs", "passes", "interrupts_who_reads",
         "closes", "polls"]


def hold(mode, deed, begin):
    """How long the server was at its strangers, for each of whom begin is called."""
    server = mode.start([sys.executable, "-c", SERVE, deed, STRANGERS])
    port = int(server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1])
    with contextlib.ExitStack() as stack:
        for _ in range(STRANGERS):
            begin(stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS_MAX)))
        server.process.send_signal(signal.SIGUSR1)
        held = float(server.wait_output(r"held ([\d.]+)\n", SECONDS_MAX)[1])
        client = mode.start([sys.executable, "-c", CLIENT, port])
        assert client.wait_exit(SECONDS_MAX) == 0, client.report() + server.report()
    assert server.wait_exit(SECONDS_MAX) == 0, server.report()
    return held


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("deed", DEEDS)
def test_nobody_is_held(only_iwarp, deed, word):
    assert hold(only_iwarp, deed, lambda sock: sock.sendall(WORDS[word])) < HELD_SECONDS_MAX


CLIENT = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.sendall(b"hello")
assert sock.recv(100) == b"hello"
"""
