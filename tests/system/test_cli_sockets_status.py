# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp sockets --status' as a user meets it: of the proxied connections, the records and the pairs."""

import collections
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
import sockets_status
from program import free_port, read_stat
from sockets_command import ANYWARP, PRELOADED, needs_library, needs_root, sockets


def test_status_of_no_process():
    child = subprocess.Popen(["true"])
    child.wait()
    done = sockets("--status", child.pid)
    assert done.returncode == 1
    assert f"no process {child.pid}" in done.stderr and "pgrep" in done.stderr


@pytest.mark.parametrize("pid", ["0", "-1", "self", "1x", "99999999999999999999", ""])
def test_status_needs_a_number(pid):
    done = sockets("--status", pid)
    assert done.returncode == 2
    assert "needs the number of a process" in done.stderr


@needs_library
def test_status_of_a_program_that_has_no_socket():
    with subprocess.Popen([str(ANYWARP), "sockets", "--rule", "off", "--", "sh", "-c",
                           "echo ready; read line"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **PRELOADED}) as program:
        assert program.stdout.readline() == "ready\n"
        done = sockets("--status", program.pid)
        program.communicate("\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"process {program.pid} has no socket in mode on or auto\n"


# Each line of its input is a number of bytes more to send, or 0: close.
END = """
def obey(connection):
    for line in sys.stdin:
        if int(line):
            connection.sendall(bytes(int(line)))
        else:
            connection.close()
        print("done", flush=True)
"""
SERVER = END + """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
connection = listener.accept()[0]
print(connection.recv(5), connection.fileno(), flush=True)
obey(connection)
"""
CLIENT = END + """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"hello")
print("sent", connection.fileno(), flush=True)
obey(connection)
"""


def program(rule, *arguments, before=(), **env):
    return subprocess.Popen([*before, str(ANYWARP), "sockets", "--rule", rule, "--", sys.executable, "-c",
                             *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, **PRELOADED, **env})


def order(running, number):
    running.stdin.write(f"{number}\n")
    running.stdin.flush()
    assert running.stdout.readline() == "done\n"


@pytest.mark.parametrize("rest", [("2",), ("--check",), ("--", "true")])
def test_nothing_follows_the_process(rest):
    done = sockets("--status", "1", *rest)
    assert done.returncode == 2
    assert f"takes one PID and nothing behind it, not '{rest[0]}'" in done.stderr


def rows_of(*pid):
    done = sockets("--status", *pid)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return sockets_status.rows(done.stdout)


def rows_of_all():
    """Others may have processes here that cannot be listed, or that are about to end."""
    return sockets_status.rows(sockets("--status").stdout)


def wait_for(look, what):
    end = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < end, f"no {what}"
    return found


def row_of(pid):
    """The one that there is, or soon: a process does not wait until its proxy knows of it."""
    row, = wait_for(lambda: rows_of(pid), f"row of {pid}")
    return row


@contextlib.contextmanager
def connected(modes=("on", "on"), **env):
    """A server and a client that are connected, and their fds."""
    port = str(free_port())
    with program(f"{modes[0]} listen", SERVER, port, **env) as server:
        assert server.stdout.readline() == "listens\n"
        with program(f"{modes[1]} connect", CLIENT, port, **env) as client:
            client_fd = client.stdout.readline().split()[1]
            server_fd = server.stdout.readline().split()[1]
            yield server, server_fd, client, client_fd
            client.communicate()
        server.communicate()


@needs_library
def test_status_of_both_ends_of_a_connection_that_is_carried():
    with connected(ANYWARP_SOCKETS_RECORD="off") as (server, server_fd, client, client_fd):
        asked = row_of(client.pid)
        served = row_of(server.pid)
    assert asked[2:6] == (client_fd, "proxy", "on", "-")
    assert asked[7:9] == ("0", "5") and asked.state == "established"
    assert served[2:6] == (server_fd, "proxy", "on", "-") and served.peer.startswith("127.0.0.1:")
    assert (served.octets_in, served.octets_out) == ("5", "0")
    assert all(int(row.send_credits) > 0 and int(row.receive_credits) > 0 for row in (asked, served))


@needs_library
def test_status_of_both_ends_of_a_record():
    with connected() as (server, server_fd, client, client_fd):
        asked, served = row_of(client.pid), row_of(server.pid)
        every = rows_of_all()
        order(client, 30000)  # less than any window: the server does not read
        more, came = row_of(client.pid), row_of(server.pid)
        order(client, 0)
        assert rows_of(client.pid) == []
        left = row_of(server.pid)
    assert asked[:5] == (str(client.pid), os.path.basename(sys.executable), client_fd, "record", "on")
    assert served[:1] + served[2:5] == (str(server.pid), server_fd, "record", "on")
    assert (asked.local, asked.peer) == (served.peer, served.local)
    assert asked.local != asked.peer and asked.peer.startswith("127.0.0.1:")
    assert asked.octets_out == served.octets_in and int(asked.octets_out) > 5
    assert asked.octets_in == served.octets_out and 0 < int(asked.octets_in) < 100  # the Reply
    assert asked[9:11] == ("-", "-") and int(asked.rtt_us) > 0 and asked.retransmits == "0"
    assert asked.state == served.state == "established"
    assert {asked[:7], served[:7]} <= {row[:7] for row in every}
    sent = int(more.octets_out) - int(asked.octets_out)
    assert 30000 <= sent < 33000 and int(came.octets_in) > int(served.octets_in)
    assert left.state == "close-wait" and left.peer == served.peer


# One process that has both ends, and what a test wants of it beside. Arguments: its address and its port.
BOTH = """
import os, socket, sys
family = socket.AF_INET6 if sys.argv[1] == "::1" else socket.AF_INET
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
client = socket.create_connection(listener.getsockname()[:2])
client.sendall(b"hello")
server = listener.accept()[0]
server.recv(5)
"""
WAIT = """
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def alone(text, address, **how):
    with program("on", text, address, str(free_port()), **how) as running:
        assert running.stdout.readline() == "ready\n"
        yield running
        running.communicate()


@needs_library
def test_status_of_ipv6_and_of_one_fd_twice():
    with alone(BOTH + "again = os.dup(client.fileno())" + WAIT, "::1") as running:
        rows = rows_of(running.pid)
    assert len(rows) == 3 and {row.kind for row in rows} == {"record"}
    fds = collections.Counter(row.local for row in rows)
    assert sorted(fds.values()) == [1, 2] and all(local.startswith("[::1]:") for local in fds)


@needs_library
def test_status_of_a_record_that_was_reset():
    """The kernel's dump has no socket that is closed, but the program has its fd still."""
    reset = "server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0' + bytes(4))\nserver.close()"
    with alone(BOTH + reset + WAIT, "127.0.0.1") as running:
        row, = rows_of(running.pid)
    assert (row.kind, row.mode, row.local, row.peer, row.octets_in, row.state) == ("record", "on", "-", "-", "-", "closed")


@needs_library
@needs_root
@pytest.mark.skipif(os.environ.get("ANYWARP_SAN") == "thread", reason="with this sanitizer's library sh crashes")
def test_status_of_another_network_namespace():
    space = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if not shutil.which("ip") or subprocess.run([*space, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace may be made here")
    with alone(BOTH + WAIT, "127.0.0.1", before=space) as running:
        rows = rows_of(running.pid)
    assert len(rows) == 2 and rows[0].local == rows[1].peer and rows[0].state == "established"


FORKER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
connection = listener.accept()[0]
connection.recv(5)
if os.fork() == 0:
    os.write(1, b"%d %d\\n" % (os.getpid(), connection.fileno()))  # whole, as echo's
    sys.stdin.read()
    os._exit(0)
if os.fork() == 0:
    connection.set_inheritable(True)
    os.execl("/bin/sh", "sh", "-c", f"echo $$ {connection.fileno()}; read line")
for _ in range(2):
    os.wait()
"""


@needs_library
@pytest.mark.parametrize("record", ["on", "off"])
def test_status_of_processes_that_were_forked_and_exec_ed(record):
    port = str(free_port())
    with program("on listen", FORKER, port, ANYWARP_SOCKETS_RECORD=record) as server:
        assert server.stdout.readline() == "listens\n"
        with program("on connect", CLIENT, port) as client:
            for _ in range(2):
                pid, fd = server.stdout.readline().split()
                row = row_of(int(pid))
                assert row[2:5] == (fd, {"on": "record", "off": "proxy"}[record], "on")
                assert row.peer.startswith("127.0.0.1:") and row.state == "established"
                assert int(row.octets_in) >= 5
                assert 0 < int(row.octets_out) < 100 if record == "on" else row.octets_out == "0"  # a record's Reply
            client.communicate()
        server.communicate()


# --- a program that says what is not so

# A memory like the one that records are in. Arguments: its size, its seals, and whose inodes it claims.
FORGER = """
import fcntl, os, random, socket, struct, sys, threading
size, seals, claim = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
memory = os.memfd_create("anywarp-records", os.MFD_ALLOW_SEALING)
os.ftruncate(memory, size)
listener = socket.create_server(("127.0.0.1", 0))
pair = socket.socketpair()
datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connection = socket.create_connection(listener.getsockname())
tcp = [os.fstat(connection.fileno()).st_ino]
inodes = {"free": tcp, "fresh": tcp, "taken": tcp, "own": [os.fstat(fd).st_ino for fd in (0, 1, memory)],
          "sockets": [os.fstat(s.fileno()).st_ino for s in (listener, datagram, *pair)]}
words = b""
for i in range(16384):
    inode = int(claim) if claim.isdigit() else inodes[claim][i % len(inodes[claim])] if claim in inodes else 0
    words += struct.pack("=QQ", {"free": 1 << 45, "fresh": 0x400001}.get(claim, 1), inode)
if claim == "noise":
    words = random.Random(1).randbytes(len(words))
    os.pwrite(memory, random.Random(2).randbytes(1 << 20), len(words))
os.pwrite(memory, struct.pack("=IIII", 0xffffffff, 0xffffffff, 16384, 1) + words, 0)
fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
def change():
    while True:
        os.pwrite(memory, random.randbytes(4096), 8 * random.randrange(1 << 15))
if claim == "changes":
    threading.Thread(target=change, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def arena_of(pid):
    """The stat of the memory that the records of a process are in."""
    folder = pathlib.Path(f"/proc/{pid}/fd")
    found = [fd for fd in folder.iterdir() if "memfd:anywarp-records" in os.readlink(fd)]
    return found[0].stat()


@contextlib.contextmanager
def forger(*arguments, text=FORGER):
    command = [sys.executable, "-c", text, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "ready\n"
        yield running
        running.communicate()


def forged_status(pid):
    done = sockets("--status", pid)
    # It does not run with the library, or nobody knows.
    assert done.returncode in (0, 1) and "does not run under" in done.stderr, done
    return done.stdout


@needs_library
@pytest.mark.parametrize("claim", ["noise", "own", "sockets", "free", "fresh", "changes", "0", "another"])
def test_status_believes_no_memory_that_a_stranger_made(claim):
    with connected() as (server, server_fd, *_):
        size = arena_of(server.pid).st_size
        if claim == "another":
            claim = str(os.stat(f"/proc/{server.pid}/fd/{server_fd}").st_ino)
        with forger(size, SEALS, claim) as running:
            for _ in range(5):
                assert forged_status(running.pid) == ""
            assert str(running.pid) not in [row.pid for row in rows_of_all()]


@needs_library
def test_status_has_the_kernels_word_for_what_a_stranger_says_of_its_own():
    with connected() as (server, *_), forger(arena_of(server.pid).st_size, SEALS, "taken") as running:
        row, = rows_of(running.pid)
    assert (row.kind, row.mode, row.state) == ("record", "-", "established")
    assert row.local.startswith("127.0.0.1:") and row.peer.startswith("127.0.0.1:")


@needs_library
@pytest.mark.parametrize("more, seals", [(4096, SEALS), (0, 0), (0, SEALS & ~fcntl.F_SEAL_SHRINK)],
                         ids=["size", "no seal", "may shrink"])
def test_status_reads_no_memory_of_another_layout(more, seals):
    with connected() as (server, *_):
        size = arena_of(server.pid).st_size
        with forger(size + more, seals, "sockets") as running:
            done = sockets("--status", running.pid)
            every = sockets("--status")
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == (f"anywarp sockets: process {running.pid} has records of another version of anywarp: "
                               "ask with that version's command\n")
        assert every.returncode == 1 and done.stderr in every.stderr
        assert str(server.pid) in [row.pid for row in sockets_status.rows(every.stdout)]


@needs_library
def test_status_leaves_the_records_as_they_are():
    """It neither locks nor writes, nor has it the kernel give pages to what nobody has used."""
    with connected() as (server, *_):
        def untouched():
            before = arena_of(server.pid)
            row_of(server.pid)
            after = arena_of(server.pid)
            return (before.st_blocks, before.st_mtime_ns) == (after.st_blocks, after.st_mtime_ns)
        wait_for(untouched, "status that leaves the records as they are")  # the programs may be at work on them yet


# The memory for the records has its name before its size and its seals.
MAKER = """
import fcntl, os, sys
memory = os.memfd_create("anywarp-records", os.MFD_ALLOW_SEALING)
print("ready", flush=True)
sys.stdin.readline()
os.ftruncate(memory, int(sys.argv[1]))
fcntl.fcntl(memory, fcntl.F_ADD_SEALS, int(sys.argv[2]))
print("done", flush=True)
sys.stdin.read()
"""


def stopped_while_it_waits(pid):
    """The command, or None where it has ended before."""
    asked = subprocess.Popen([str(ANYWARP), "sockets", "--status", str(pid)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    stat = f"/proc/{asked.pid}/stat"
    wait_for(lambda: read_stat(stat)[0] in "SZ", "wait")
    os.kill(asked.pid, signal.SIGSTOP)
    wait_for(lambda: read_stat(stat)[0] in "TZ", "stop")
    if read_stat(stat)[0] == "T":
        return asked
    asked.communicate()
    return None


@needs_library
def test_status_waits_for_records_that_are_being_made():
    with connected() as (server, *_):
        size = arena_of(server.pid).st_size
    with forger(size, SEALS, text=MAKER) as running:
        asked = wait_for(lambda: stopped_while_it_waits(running.pid), "status that waits")
        order(running, 1)
        asked.send_signal(signal.SIGCONT)
        said = asked.communicate(timeout=60)
    assert said[0] == "" and "another version" not in said[1]


# --- pairs

@needs_library
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_both_ends_of_a_pair_are_listed(address):
    port = free_port()
    family = "socket.AF_INET6" if ":" in address else "socket.AF_INET"
    server_code = SERVER.replace('socket.create_server(("127.0.0.1", int(sys.argv[1])))',
                                 f'socket.create_server(("{address}", int(sys.argv[1])), family={family})')
    patience = {"ANYWARP_SOCKETS_PAIR_MS": "20000"}
    with program("auto", server_code, str(port), **patience) as server:
        assert server.stdout.readline() == "listens\n"
        with program("auto", CLIENT.replace("127.0.0.1", address), str(port), **patience) as client:
            word, client_fd = client.stdout.readline().split()
            octets, server_fd = server.stdout.readline().split()
            assert (word, octets) == ("sent", "b'hello'")
            [of_server] = rows_of(server.pid)
            [of_client] = rows_of(client.pid)
            client.communicate()
        server.communicate()
    assert (of_server.fd, of_server.kind, of_server.mode, of_server.state) == (server_fd, "pair", "auto", "established")
    assert (of_client.fd, of_client.kind, of_client.mode, of_client.state) == (client_fd, "pair", "auto", "established")
    assert (of_server.local, of_server.peer) == (of_client.peer, of_client.local)
    assert of_server.local.endswith(f":{port}") and address in of_server.local
