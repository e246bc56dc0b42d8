# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where the proxy puts the sockets that answer for the status: in a directory that is its user's alone, whatever
somebody else has made before, and where 'anywarp sockets --status' finds them."""

import os
import shutil
import socket
import subprocess
import tempfile

import conftest
import pytest
import sockets_status

# A user that nobody is, and no other run of these tests.
USER = 65100 + os.getpid() % 300
TMP = f"/tmp/anywarp-{USER}"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")

SERVE = """
import encodings.idna, os, signal, socket, sys
if int(sys.argv[1]) != os.getuid():
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"x")
server.recv(1)
print("serves", os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture
def mode(request, tmp_path, open_libraries):
    yield from conftest.open_mode(request, tmp_path, "proxy")


@pytest.fixture
def places():
    """What the test's user leaves in /tmp goes."""
    def ours():
        return [path for path in os.scandir("/tmp")
                if path.name == f"anywarp-{USER}" or path.name.startswith(f"anywarp-{USER}-")]
    assert not ours()
    yield ours
    for path in ours():
        if path.is_symlink() or not path.is_dir():
            os.unlink(path)
        else:
            shutil.rmtree(path)


def begin(mode, user, **env):
    run = mode.start(["/usr/bin/python3", "-I", "-c", SERVE, user], **env)
    return run, run.wait_output(r"serves (\d+)\n")[1]


def expect_status(run, pid, **env):
    def both():
        asked = subprocess.run([conftest.BUILD / "bin" / "anywarp", "sockets", "--status", pid],
                               capture_output=True, text=True, check=False, env={**os.environ, **env})
        rows = sockets_status.rows(asked.stdout) if asked.returncode == 0 else []
        return rows if len(rows) == 2 else None
    run.wait_until(both, "both ends in the status")  # the proxy may still be at its start


def strangers_directory():
    os.mkdir(TMP, 0o700)


def open_directory():
    os.mkdir(TMP)
    os.chown(TMP, USER, USER)
    os.chmod(TMP, 0o777)


def link():
    os.symlink("/var", TMP)


def file():
    os.close(os.open(TMP, os.O_CREAT, 0o600))


@needs_root
@pytest.mark.parametrize("made", [None, strangers_directory, open_directory, link, file])
def test_somebody_was_there_first(mode, places, made):
    """Two proxies of the user's then share another place."""
    if made:
        made()
    for _ in range(2):
        run, pid = begin(mode, USER, XDG_RUNTIME_DIR="")
        expect_status(run, pid)
    assert len(places()) == (2 if made else 1)


def test_the_users_own_directory_comes_first(mode):
    with tempfile.TemporaryDirectory(prefix="anywarp-test-") as place:
        run, pid = begin(mode, os.getuid(), XDG_RUNTIME_DIR=place)
        expect_status(run, pid, XDG_RUNTIME_DIR=place)
        assert os.path.exists(f"{place}/anywarp-{os.getuid()}/sockets.{pid}")


@pytest.fixture
def open_place():
    with tempfile.TemporaryDirectory(prefix="anywarp-test-") as place:
        os.chmod(place, 0o777)
        yield place


@needs_root
@pytest.mark.parametrize("runtime", ["/nowhere", "/tmp", "/", "relative", "open"])
def test_one_that_is_no_use_is_passed_over(mode, places, open_place, runtime):
    runtime = open_place if runtime == "open" else runtime
    run, pid = begin(mode, USER, XDG_RUNTIME_DIR=runtime)
    expect_status(run, pid, XDG_RUNTIME_DIR=runtime)
    assert [path.name for path in places()] == [f"anywarp-{USER}"]


def socket_of(pid):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(f"{TMP}/sockets.{pid}")
    os.chown(f"{TMP}/sockets.{pid}", USER, USER)
    return sock


@needs_root
def test_sockets_of_killed_proxies_go(mode, places):
    """Another one of the user's takes them away, but none that still answers, nor other files."""
    os.mkdir(TMP, 0o700)
    os.chown(TMP, USER, USER)
    with subprocess.Popen(["true"]) as dead:
        pass
    socket_of(dead.pid).close()
    gone = dead.pid + (1 << 22)
    with socket_of(gone) as lives:
        lives.listen()
        with open(f"{TMP}/sockets.txt", "w", encoding="ascii"):
            pass
        run, pid = begin(mode, USER, XDG_RUNTIME_DIR="")
        expect_status(run, pid)
        left = sorted(os.listdir(TMP))
    assert left == sorted(["sockets.txt", f"sockets.{gone}", f"sockets.{pid}"])
