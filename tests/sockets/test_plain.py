# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Why a connection is plain TCP: the log tells it at info, and `anywarp sockets --status` lists and counts it. Each script makes one connection
that is plain TCP for one reason, prints "ready", and keeps it."""

import os
import pathlib
import subprocess
import sys

import conftest
import program
import pytest
import sockets_status

ANYWARP = conftest.BUILD / "bin" / "anywarp"
HEAD = f"import sys\nsys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nfrom pair_head import *\n"
KEEP = "\nprint('ready', flush=True)\nthreading.Event().wait()\n"
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")


@pytest.fixture
def auto(request, tmp_path):
    yield from conftest.open_mode(request, tmp_path, "pair")


def start(mode, script, *argv, **environment):
    started = mode.start([sys.executable, "-B", "-c", HEAD + script + KEEP, *argv], ANYWARP_LOG="info", **environment)
    started.wait_output("ready", program.SECONDS_MAX)
    return started


def status_of(started):
    done = subprocess.run([ANYWARP, "sockets", "--status", str(started.pid)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def expect(started, word, text, mode="auto"):
    """One connection, for that reason. Returns its row."""
    printed = status_of(started)
    row, = [row for row in sockets_status.rows(printed) if row.kind == "tcp"]
    assert (row.mode, row.why, row.state) == (mode, word, "established"), printed
    assert sockets_status.reasons(printed) == {word: 1}, printed
    assert text in printed and f"is plain TCP: {text}" in started.report(), (printed, started.report())
    return row


# A server that nobody knows: it has no library of ours, which is the test's own process.
@pytest.fixture
def strange_server():
    import socket
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


CLIENT = "client = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"


def test_a_server_without_the_library(auto, strange_server):
    port = strange_server.getsockname()[1]
    row = expect(start(auto, CLIENT, str(port)), "no-listener", "no server in auto is known at that address")
    assert row.peer == f"127.0.0.1:{port}" and row.local.startswith("127.0.0.1:")


def test_a_client_without_the_library(auto):
    import socket
    server = auto.start([sys.executable, "-B", "-c", HEAD + "listener = socket.create_server(('127.0.0.1', 0))\n"
                         "print(listener.getsockname()[1], flush=True)\nserver = listener.accept()[0]" + KEEP], ANYWARP_LOG="info")
    port = server.wait_output(r"\d+\n").group()
    with socket.create_connection(("127.0.0.1", int(port))):
        server.wait_output("ready", program.SECONDS_MAX)
        expect(server, "no-offer", "the client did not offer a pair")


WAITS = """
listener = socket.create_server(("127.0.0.1", 0))
select.select([listener], [], [], 0)
print(listener.getsockname()[1], flush=True)"""


def test_a_server_that_accepts_late(auto):
    """The second connection makes no offer; both are counted."""
    server = start(auto, WAITS)
    port = server.wait_output(r"\d+\n").group().strip()
    client = start(auto, CLIENT, port, ANYWARP_SOCKETS_PAIR_MS="10")
    expect(client, "late", "the server did not accept the connection within ANYWARP_SOCKETS_PAIR_MS (10 ms")
    client = start(auto, CLIENT + "\nagain = socket.create_connection(('127.0.0.1', int(sys.argv[1])))", port,
                   ANYWARP_SOCKETS_PAIR_MS="10")
    printed = status_of(client)
    assert sockets_status.reasons(printed) == {"late": 1, "late-before": 1}, printed
    assert [row.why for row in sockets_status.rows(printed)] == ["late", "late-before"], printed


def test_a_server_that_speaks_first_by_tcp(auto):
    server = start(auto, WAITS + """
def serve():
    server = raw("accept", listener.fileno(), 0, 0)
    raw("write", server, b"first", 5)
threading.Thread(target=serve, daemon=True).start()""")
    port = server.wait_output(r"\d+\n").group().strip()
    expect(start(auto, CLIENT, port), "server-first", "the server sent bytes or closed before it took the offer")


def test_a_handshake_that_takes_long(auto):
    server = start(auto, WAITS.replace('0))', '0), backlog=0)') + "\nfull = socket.create_connection(listener.getsockname())")
    port = server.wait_output(r"\d+\n").group().strip()
    client = start(auto, "client = socket.socket()\nclient.setblocking(False)\n"
                   "assert client.connect_ex(('127.0.0.1', int(sys.argv[1]))) == 115", port, ANYWARP_SOCKETS_PAIR_MS="10")
    printed = status_of(client)
    assert sockets_status.reasons(printed) == {"handshake": 1}, printed
    assert "syn-sent" in printed


def test_a_listener_of_the_only_thread(auto):
    expect_own = start(auto, """
listener = socket.create_server(("127.0.0.1", 0))
select.select([listener], [], [], 0)
client = socket.create_connection(listener.getsockname())""")
    expect(expect_own, "own-listener", "the program connects to its own listener in its only thread")


LISTENING = """
listener, accepted = listening(), []
print(listener.getsockname()[1], flush=True)
threading.Thread(target=lambda: [accepted.append(listener.accept()) for _ in iter(int, 1)], daemon=True).start()"""


@pytest.mark.parametrize("script, word, text", [
    ("client = socket.socket()\nif not os.fork():\n    os._exit(0)\nos.wait()\nclient.connect(('127.0.0.1', int(sys.argv[1])))",
     "forked", "the process has forked since it made the socket"),
    ("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nheld = [os.dup(0) for _ in range(40)]\n" + CLIENT,
     "few-fds", "half of the process's fd numbers are in use: raise the limit of open files"),
])
def test_a_client_that_makes_no_offer(auto, script, word, text):
    server = start(auto, LISTENING)
    client = start(auto, script, server.wait_output(r"\d+\n").group().strip())
    if word != "few-fds":  # it has no fd for its notes either
        expect(client, word, text)
    assert f"is plain TCP: {text}" in client.report()


def test_a_pair_is_not_plain(auto):
    server = start(auto, LISTENING)
    client = start(auto, CLIENT, server.wait_output(r"\d+\n").group().strip())
    assert [row.kind for row in sockets_status.rows(status_of(client))] == ["pair"]
    assert not sockets_status.reasons(status_of(client))


def test_off_by_the_rules(auto, strange_server):
    port = strange_server.getsockname()[1]
    auto.rules = "on port=1"
    client = start(auto, CLIENT, str(port))
    expect(client, "off", "its mode is off, by a rule, by the program, or because no rule matches it", "off")


def test_a_connect_that_is_called_again_is_one_connection(auto, strange_server):
    port = strange_server.getsockname()[1]
    expect(start(auto, "client = socket.socket()\nclient.setblocking(False)\naddress = ('127.0.0.1', int(sys.argv[1]))\n"
                 "client.connect_ex(address)\nselect.select([], [client], [])\nclient.connect_ex(address)", str(port)),
           "no-listener", "no server in auto is known")


def test_a_connect_that_fails_is_none(auto):
    client = start(auto, "client = socket.socket()\nassert client.connect_ex(('127.0.0.1', 1)) == 111")
    assert "has no socket in mode on or auto" in status_of(client)
    assert "plain TCP" not in client.report()


def test_a_child_is_counted_with_its_parent(auto, strange_server):
    """Both are asked for at once, as for all processes: the notes that they share are counted once."""
    port = strange_server.getsockname()[1]
    parent = start(auto, CLIENT + "\nif not os.fork():\n    child = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
                   "    print('child', flush=True)\n    threading.Event().wait()", str(port))
    parent.wait_output("child", program.SECONDS_MAX)
    assert sockets_status.reasons(status_of(parent)) == {"no-listener": 2}
    if os.getuid():
        return
    done = subprocess.run([ANYWARP, "sockets", "--status"], capture_output=True, text=True, check=False)
    rows = [row for row in sockets_status.rows(done.stdout) if row.peer == f"127.0.0.1:{port}"]
    assert len(rows) == 3, done.stdout  # the parent's connection is the child's, too
