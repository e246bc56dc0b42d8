# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The UDP port of a listener's number, at which the proxy answers clients in auto: a program that wants it itself has
it, in whatever order, as it would without us."""

import os
import shutil
import socket
import subprocess
import sys

import conftest
import pytest
from program import free_port

NOBODY = 65534
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")

SERVER = """
import encodings.idna, os, signal, socket, sys
how, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET

def tcp():
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.listen()
    return sock

def udp():
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind((address, port))
    return sock

def in_child(act):
    child = os.fork()
    if child == 0:
        kept = act()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def give_up():
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))

if how == "udp first":
    kept = udp(), tcp()
elif how == "child":
    kept = tcp()
    in_child(udp)
elif how == "becomes another":
    kept = tcp()
    give_up()
    kept = kept, udp()
elif how == "tcp alone":
    kept = tcp()
elif how == "udp alone":
    kept = udp()
else:
    kept = tcp(), udp()
print("has both", flush=True)
signal.pause()
"""


@pytest.fixture
def mode(request, tmp_path, open_libraries):
    yield from conftest.open_mode(request, tmp_path, "auto")


def begin(mode, how, port, address="127.0.0.1"):
    run = mode.start(["/usr/bin/python3", "-I", "-c", SERVER, how, address, port, NOBODY])
    run.wait_output("has both\n")
    return run


def is_free(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("how", ["tcp first", "udp first", "child", "becomes another"])
def test_a_server_has_both(mode, how, address):
    if how == "becomes another" and os.getuid() != 0:
        pytest.skip("only root can become another user")
    begin(mode, how, free_port(), address)


def test_another_program_has_it(mode):
    """Whose proxy is another one, and which has none yet."""
    port = free_port()
    begin(mode, "tcp alone", port)
    assert not is_free(port)
    begin(mode, "udp alone", port)


def test_it_is_not_taken_from_another_program(mode):
    port = free_port()
    begin(mode, "udp alone", port)
    begin(mode, "tcp alone", port)
    late = mode.start(["/usr/bin/python3", "-I", "-c", SERVER, "udp alone", "127.0.0.1", port, NOBODY])
    assert late.wait_exit() == 1
    assert "Address already in use" in late.report()


DOOR = """
import os, socket, sys
os.setgroups([])
os.setuid(int(sys.argv[1]))
door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
door.bind("\\0anywarp-proxy-%d" % os.getpid())
os.makedirs(sys.argv[2])
beside = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
beside.bind(sys.argv[2] + "/door.1")
os.chmod(sys.argv[2] + "/door.1", 0o777)
os.chmod(sys.argv[2], 0o755)
print("waits", flush=True)
sys.stdin.readline()
for sock in door, beside:
    sock.setblocking(False)
    try:
        print("got", len(sock.recv(4096)), flush=True)
    except BlockingIOError:
        print("got nothing", flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_no_other_user_is_told_or_waited_for(mode):
    """Whoever has a socket where a proxy might have one."""
    place = f"/tmp/anywarp-{os.getuid()}-stranger{os.getpid()}"
    port = free_port()
    with subprocess.Popen([sys.executable, "-I", "-c", DOOR, str(NOBODY), place], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        try:
            assert stranger.stdout.readline() == "waits\n"
            begin(mode, "udp alone", port)
            late = mode.start(["/usr/bin/python3", "-I", "-c", SERVER, "udp alone", "127.0.0.1", port, NOBODY])
            assert late.wait_exit() == 1
            assert stranger.communicate("\n")[0] == "got nothing\n" * 2
        finally:
            stranger.kill()
            shutil.rmtree(place)
