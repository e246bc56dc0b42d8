# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Records across an exec or a spawn: how many, and which processes hold them."""

import sys

import program
import pytest
from test_record import CONNECTED, NO_RECORD, SECONDS_MAX

# The ends of so many connections, of which some fds have duplicates, in a program that becomes another one.
CROWD = 3000
FILL_AND_EXEC = """
import os, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
pairs = []
for i in range(min(int(sys.argv[3]), (hard - 100) // 3)):
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    pairs.append((client, server.dup() if i % 7 == 0 else server))
    for end in pairs[-1]:
        end.set_inheritable(True)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], " ".join(str(end.fileno()) for pair in pairs for end in pair)])
"""
TALK_ON_ALL = """
import socket, sys
ends = [socket.socket(fileno=int(fd)) for fd in sys.argv[1].split()]
for client, server in zip(ends[::2], ends[1::2]):
    word = b"to and fro %d" % client.fileno()
    client.sendall(word)
    assert server.recv(100) == word
    server.sendall(word)
    assert client.recv(100) == word
print("talked on", len(ends) // 2)
"""


def test_exec_of_a_crowd(only_iwarp):
    run = only_iwarp.start([sys.executable, "-c", FILL_AND_EXEC, program.free_port(), TALK_ON_ALL, CROWD],
                            ANYWARP_LOG="info")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    assert "talked on" in run.output() and NO_RECORD not in run.output(), run.report()


# How many processes hold each slot, by its inode, as the arena says.
HOLDERS = CONNECTED + """
import ctypes, os, struct, subprocess
def holders():
    fd = next(fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}") and
              os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:anywarp-records"))
    with open(f"/proc/self/fd/{fd}", "rb") as arena:
        entries = list(struct.iter_unpack("QQ", arena.read(16 + 16 * 64)[16:]))
    return [next(word & 0xffffff for word, inode in entries if inode == os.fstat(end.fileno()).st_ino)
            for end in (client, server)]
assert holders() == [1, 1], holders()
"""
# A child that waits, with a program of its own, gets the server's end alone, and later ends.
CHILDREN = HOLDERS + """
ASK = [sys.executable, "-c", "import os, sys; os.write(1, b'!'); os.read(0, 1); os.write(int(sys.argv[1]), b'word')"]
def spawn(number):
    actions = [(os.POSIX_SPAWN_DUP2, ours.fileno(), 0), (os.POSIX_SPAWN_DUP2, ours.fileno(), 1)]
    return os.posix_spawn(sys.executable, ASK + [number], os.environ, file_actions=actions)
def spawn_failing(number):
    try:
        os.posix_spawn("/nowhere", ASK, os.environ)
    except FileNotFoundError:
        assert holders() == [1, 1], holders()
    return spawn(number)
def fork(number):
    pid = os.fork()
    if pid == 0:
        os.dup2(ours.fileno(), 0)
        os.dup2(ours.fileno(), 1)
        os.execv(sys.executable, ASK + [number])
    return pid
def vfork(number):
    return subprocess.Popen(ASK + [number], stdin=ours, stdout=ours, close_fds=False).pid
def fork_failing(number):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/nowhere", ASK)
        except FileNotFoundError:
            os.dup2(ours.fileno(), 0)
            os.dup2(ours.fileno(), 1)
            os.execv(sys.executable, ASK + [number])
    return pid
# The kernel refuses CLONE_SIGHAND without CLONE_VM.
CLONE_SIGHAND, SYS_CLONE = 0x800, {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
def clone_failing(number):
    run, stack = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0), (ctypes.c_long * 8192)()
    assert ctypes.CDLL(None).clone(run, ctypes.byref(stack, 32768), CLONE_SIGHAND, None) == -1
    assert holders() == [1, 1], holders()
    return spawn(number)
def clone_by_number_failing(number):
    if SYS_CLONE:
        assert ctypes.CDLL(None).syscall(SYS_CLONE, CLONE_SIGHAND, 0, 0, 0, 0) == -1
    assert holders() == [1, 1], holders()
    return spawn(number)
theirs, ours = socket.socketpair()
server.set_inheritable(True)
pid = globals()[sys.argv[2]](str(server.fileno()))
assert theirs.recv(1) == b"!"
assert holders() == [1, 2], holders()
theirs.send(b"!")
assert client.recv(4) == b"word"
assert os.waitpid(pid, 0)[1] == 0
assert holders() == [1, 1], holders()
"""


@pytest.mark.parametrize("way", ["spawn", "spawn_failing", "fork", "vfork", "fork_failing", "clone_failing",
                                 "clone_by_number_failing"])
def test_holders_across_exec(only_iwarp, way):
    run = only_iwarp.start([sys.executable, "-c", CHILDREN, program.free_port(), way], ANYWARP_LOG="info")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    assert NO_RECORD not in run.output(), run.report()


# A program without the library, which passes the library's variables on to programs with it, holds no slot for them.
STRANGER_BETWEEN = HOLDERS + """
once = "LD_PRELOAD=$LIBRARY /bin/true; "
pid = os.posix_spawn("/bin/sh", ["sh", "-c", once * 3], {"LIBRARY": os.environ["LD_PRELOAD"]})
assert os.waitpid(pid, 0)[1] == 0
assert holders() == [1, 1], holders()
client.sendall(b"word")
assert server.recv(4) == b"word"
"""


def test_a_stranger_between_relatives(only_iwarp):
    run = only_iwarp.start([sys.executable, "-c", STRANGER_BETWEEN, program.free_port()], ANYWARP_LOG="info")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    assert NO_RECORD not in run.output(), run.report()
