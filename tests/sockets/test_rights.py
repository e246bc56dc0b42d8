# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that gives up root has, over iWARP as over TCP, the rights that the kernel leaves it: none of the proxy's,
which was started before. Each test runs with the kernel's TCP as well, which says what is right."""

import json
import os
import socket

import conftest
import pytest

NOBODY = 65534
pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user"),
    pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's"),
]


@pytest.fixture(params=conftest.ALL_MODES)
def mode(request, tmp_path, open_libraries):
    yield from conftest.open_mode(request, tmp_path, request.param)


HEAD = """
import encodings.idna, json, os, signal, socket, struct, sys
def give_up():
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
def outcome(call, *args):
    try:
        return call(*args) or 0
    except OSError as error:
        return error.errno
def connected():
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    return listener, client, server
"""

# Level, name and value of what takes CAP_NET_ADMIN or CAP_NET_RAW, and two that anybody may.
OPTIONS = {
    "SO_MARK": (socket.SOL_SOCKET, 36, 1),
    "SO_PRIORITY": (socket.SOL_SOCKET, 12, 7),
    "SO_DEBUG": (socket.SOL_SOCKET, 1, 1),
    "SO_RCVBUFFORCE": (socket.SOL_SOCKET, 33, 1 << 20),
    "IP_TRANSPARENT": (socket.IPPROTO_IP, 19, 1),
    "IP_TOS": (socket.IPPROTO_IP, 1, 0x10),
    "TCP_NODELAY": (socket.IPPROTO_TCP, 1, 1),
    "TCP_REPAIR": (socket.IPPROTO_TCP, 19, 1),
}

SET = HEAD + """
kept = connected()
if sys.argv[3] == "forks" and os.fork():
    sys.exit(os.wait()[1])
if sys.argv[3] != "stays":
    give_up()
print(json.dumps({name: [outcome(sock.setsockopt, *option) for sock in kept[1:]]
                  for name, option in json.loads(sys.argv[2]).items()}))
"""


@pytest.mark.parametrize("how", ["stays", "gives up", "forks"])
def test_options(mode, how):
    """A child has its parent's connections, and the rights that it has itself."""
    program = ["/usr/bin/python3", "-I", "-W", "ignore::DeprecationWarning", "-c", SET, NOBODY, json.dumps(OPTIONS), how]
    run = mode.start(program)
    assert run.wait_exit() == 0, run.report()
    plain = conftest.Mode("plain", mode.logs).start(program)
    assert plain.wait_exit() == 0, plain.report()
    assert json.loads(run.output()) == json.loads(plain.output())


# The child's threads do not matter: before the fork none, one that has ended, or one that runs in the child.
MAPPED = HEAD + """
import ctypes, threading
def is_mapped():
    with open("/proc/self/maps") as maps:
        return "anywarp-records" in maps.read()
def become(user, how):
    os.setgroups([])
    os.setgid(user)
    if how == "syscall":
        number = {"x86_64": 117, "aarch64": 147}[os.uname().machine]
        assert ctypes.CDLL(None).syscall(number, user, user, user) == 0
    elif how == "setresuid":
        os.setresuid(user, user, user)
    elif how == "setreuid":
        os.setreuid(user, user)
    else:
        os.setuid(user)
user, how, threads = int(sys.argv[1]), *sys.argv[2:]
kept = connected()
if threads != "none":
    past = threading.Thread(target=int)
    past.start()
    past.join()
assert is_mapped(), "no record"
if os.fork():
    status = os.waitstatus_to_exitcode(os.wait()[1])
    assert kept[2].recv(1) == b"y" and is_mapped(), "the parent's go on"
    sys.exit(status)
if threads == "one":
    threading.Thread(target=signal.pause, daemon=True).start()
become(user, how)
mapped = is_mapped()
kept[1].sendall(b"y")
print(json.dumps([mapped, os.getresuid()]), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("threads", ["none", "ended", "one"])
@pytest.mark.parametrize("how", ["setuid", "setresuid", "setreuid", "syscall"])
def test_no_other_user_s_records_stay_mapped(only_iwarp, open_libraries, how, threads):
    program = ["/usr/bin/python3", "-I", "-W", "ignore::DeprecationWarning", "-c", MAPPED, NOBODY, how, threads]
    run = only_iwarp.start(program)
    assert run.wait_exit() == 0, run.report()
    assert json.dumps([False, [NOBODY] * 3]) in run.output(), run.report()


# The user changes while threads read and write, and one sleeps in a read.
BUSY = HEAD + """
import hashlib, threading
busy, quiet = connected(), connected()
sent, got, over = hashlib.sha256(), hashlib.sha256(), threading.Event()
passed = threading.Semaphore(0)
def write():
    count = 0
    while not over.is_set():
        block = count.to_bytes(8, "big") * 500
        busy[1].sendall(block)
        sent.update(block)
        count += 1
    busy[1].shutdown(socket.SHUT_WR)
def read():
    while block := busy[2].recv(8192):
        got.update(block)
        passed.release()
def sleep():
    assert quiet[2].recv(1) == b"w", "the one that slept"
threads = [threading.Thread(target=run) for run in (write, read, sleep)]
for thread in threads:
    thread.start()
def go_on():
    for _ in range(100):
        assert passed.acquire(timeout=30)
go_on()
give_up()
go_on()
over.set()
quiet[1].sendall(b"w")
for thread in threads:
    thread.join()
with open("/proc/self/maps") as maps:
    print(json.dumps(["anywarp-records" in maps.read(), sent.digest() == got.digest()]))
"""


def test_the_user_changes_under_busy_threads(only_iwarp, open_libraries):
    run = only_iwarp.start(["/usr/bin/python3", "-I", "-W", "ignore::DeprecationWarning", "-c", BUSY, NOBODY])
    assert run.wait_exit() == 0, run.report()
    assert "[false, true]" in run.output(), run.report()


# No fd can be made: the proxy cannot take the connection.
ENDED = HEAD + """
import resource
kept = connected()
if pid := os.fork():
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    kept[1].sendall(b"z")
    assert kept[2].recv(1) == b"z", "the parent's go on"
    sys.exit()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
give_up()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
with open("/proc/self/maps") as maps:
    mapped = "anywarp-records" in maps.read()
print(json.dumps([mapped, bool(outcome(kept[1].send, b"y"))]), flush=True)
os._exit(0)
"""


def test_a_record_that_cannot_be_handed_over_ends(only_iwarp, open_libraries):
    run = only_iwarp.start(["/usr/bin/python3", "-I", "-W", "ignore::DeprecationWarning", "-c", ENDED, NOBODY])
    assert run.wait_exit() == 0, run.report()
    assert "[false, true]" in run.output(), run.report()
    assert "was not handed to the proxy process" in run.report()


PASS = HEAD + """
ours, theirs = socket.socketpair()
rendezvous = socket.socket(socket.AF_UNIX)
rendezvous.bind(b"")
rendezvous.listen()
kept = connected()
if not os.fork():
    give_up()
    near, far = socket.socketpair()
    if sys.argv[3] == "connected":
        near = socket.socket(socket.AF_UNIX)
    near.bind(sys.argv[2].encode().replace(b"@", b"\\0"))
    if sys.argv[3] == "connected":
        near.connect(rendezvous.getsockname())
    socket.send_fds(theirs, [b"x"], [near.fileno()])
    os._exit(0)
os.wait()
got = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])
name = outcome(got.getpeername)
print(got.family.name, name == rendezvous.getsockname() or repr(name), outcome(got.getsockopt, socket.IPPROTO_TCP, socket.TCP_NODELAY),
      outcome(got.getsockopt, socket.SOL_SOCKET, socket.SO_DOMAIN))
"""
# What the library calls the program's end of a connection from 127.0.0.1:80 to 192.0.2.1:1.
END = "00000000000000000000ffff"
NAME = f"@anywarp:4{END}7f0000010050{END}c00002010001" + "0" * 16


@pytest.mark.parametrize("how", ["paired", "connected"])
def test_a_name_is_believed_of_our_own_user_alone(mode, how):
    """Whoever passes an fd could else say who its peer is. The other end of such a socket may well be root's."""
    program = ["/usr/bin/python3", "-I", "-W", "ignore::DeprecationWarning", "-c", PASS, NOBODY, NAME, how]
    run = mode.start(program)
    assert run.wait_exit() == 0, run.report()
    plain = conftest.Mode("plain", mode.logs).start(program)
    assert plain.wait_exit() == 0, plain.report()
    assert run.output() == plain.output()
    assert "192.0.2.1" not in run.output() and "AF_UNIX" in run.output()
