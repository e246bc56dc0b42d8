# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp sockets --status PID' and whoever answers in the name of the process's proxy."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import sockets_status
from open_build import open_build
from sockets_command import BUILD, needs_root, sockets

# A user that nobody is, and no other run of these tests; and one more.
STRANGER = 61000 + os.getpid() % 2000 * 2

ANSWERER = """
import contextlib, os, socket, sys
directory, mode, answer = sys.argv[1], int(sys.argv[2], 8), sys.argv[3].encode()
name = f"{directory}/sockets.{os.getpid()}"
if mode:
    os.makedirs(directory, exist_ok=True)
    os.chmod(directory, mode)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    if answer == b"closed":
        server.close()
print("ready", flush=True)
if mode and answer not in (b"no", b"closed"):
    connection = server.accept()[0]
    connection.settimeout(0.2)
    while answer == b"drip" and not connection.send(b"7") == 0:
        with contextlib.suppress(TimeoutError):
            connection.recv(1)
    connection.sendall(answer)
    connection.close()
sys.stdin.read()
"""


@contextlib.contextmanager
def answerer(answer, directory=f"/tmp/anywarp-{STRANGER}", mode="0700", user=STRANGER):
    """A process of another user that answers so. Its directory goes with it."""
    process = subprocess.Popen([sys.executable, "-c", ANSWERER, directory, mode, answer],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user,
                               env={"PATH": "/usr/bin:/bin"})
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        shutil.rmtree(directory, ignore_errors=True)


@needs_root
def test_status_is_a_table():
    with answerer("7 on 192.0.2.7:80 12 3456789 1 384 established\n"
                  "12 auto [2001:db8::1]:65535 0 0 0 0 connecting\n") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["pid", "program", "fd", "kind", "mode", "local", "peer", "bytes", "in", "bytes", "out",
                                "send", "credits", "receive", "credits", "rtt", "us", "retransmits", "state", "why"]
    name = os.path.basename(sys.executable)
    assert lines[1].split() == [str(process.pid), name, "7", "proxy", "on", "-", "192.0.2.7:80", "12", "3456789", "1",
                                "384", "-", "-", "established", "-"]
    assert sockets_status.rows(done.stdout)[1].peer == "[2001:db8::1]:65535"
    assert len({line.index(word) for line, word in zip(lines, ("state", "established",
                                                               "connecting"))}) == 1


@needs_root
def test_status_of_one_that_has_nothing_open_is_the_head_alone():
    with answerer("") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


@needs_root
@pytest.mark.parametrize("answer", ["7 on peer 1 2 3 4\n", "1 2 3 4 5 6 7 8 9\n", "\n",
                                    "x" * 3000])
def test_status_that_is_no_table_is_refused(answer):
    with answerer(answer) as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert "another version" in done.stderr


@needs_root
def test_status_shows_no_octets_that_a_terminal_obeys():
    with answerer("7 on \033[2J 1 2 3 4 open\n") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 0
    assert "\033" not in done.stdout and "?[2J" in done.stdout


@needs_root
def test_status_of_a_stopped_process_ends():
    with answerer("no") as process:
        os.kill(process.pid, signal.SIGSTOP)
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert "is it stopped?" in done.stderr


@needs_root
def test_status_of_a_process_that_answers_octet_by_octet_ends():
    """Each read has something: the time is for all of the answer."""
    with answerer("drip") as process:
        began = time.monotonic()
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert "does not answer within 5 seconds" in done.stderr
    assert time.monotonic() - began < 20


@needs_root
def test_status_takes_no_directory_that_others_can_write():
    with answerer("", mode="0755") as process:
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert f"is not a directory of uid {STRANGER} with mode 0700: remove it" in done.stderr


@needs_root
def test_status_takes_no_directory_of_another_user():
    directory = f"/tmp/anywarp-{STRANGER}"
    with answerer("", mode="0", user=STRANGER) as process:
        os.mkdir(directory, mode=0o700)
        done = sockets("--status", process.pid)
    assert done.returncode == 1
    assert f"is not a directory of uid {STRANGER}" in done.stderr


@needs_root
def test_status_passes_over_what_a_stranger_made_beside():
    """A proxy chooses such a name at random: everybody may have one."""
    beside = f"/tmp/anywarp-{STRANGER}-beside"
    with answerer("", mode="0") as process:
        os.mkdir(beside, mode=0o700)
        try:
            done = sockets("--status", process.pid)
        finally:
            os.rmdir(beside)
    assert done.returncode == 1
    assert "does not run under 'anywarp sockets': start it so" in done.stderr


@needs_root
def test_status_finds_roots_proxy_whatever_a_stranger_made(tmp_path):
    """Of a process that has given up root."""
    ours = tmp_path / "anywarp-0"
    with answerer("no", mode="0") as asked, answerer("", directory=str(ours), user=0) as proxy:
        os.mkdir(f"/tmp/anywarp-{STRANGER}", mode=0o700)
        os.rename(ours / f"sockets.{proxy.pid}", ours / f"sockets.{asked.pid}")
        done = sockets("--status", asked.pid, XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


@needs_root
def test_status_takes_a_directory_by_its_name(tmp_path):
    """Which is no pattern."""
    folder = tmp_path / "[x]"
    with answerer("", directory=str(folder / "anywarp-0"), user=0) as process:
        done = sockets("--status", process.pid, XDG_RUNTIME_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


@needs_root
def test_status_takes_no_answer_of_another_user(tmp_path):
    forged = tmp_path / "forged"
    ours = f"/tmp/anywarp-{STRANGER}"
    with answerer("no") as asked, answerer("no", directory=str(forged), user=0) as process:
        os.rename(forged / f"sockets.{process.pid}", f"{ours}/sockets.{asked.pid}")
        done = sockets("--status", asked.pid)
    assert done.returncode == 1
    assert f"it is process {process.pid} of uid 0 that answers" in done.stderr


@needs_root
def test_status_without_a_socket_or_with_one_left_over():
    for answer, mode in (("no", "0"), ("closed", "0700")):
        with answerer(answer, mode=mode) as process:
            done = sockets("--status", process.pid)
        assert done.returncode == 1
        assert "does not run under 'anywarp sockets': start it so" in done.stderr


@needs_root
def test_status_of_a_process_of_another_user_names_it():
    with answerer("", user=STRANGER) as process:
        done = sockets("--status", process.pid, command=open_build(BUILD) / "bin" / "anywarp", user=STRANGER + 1)
    assert done.returncode == 1
    assert f"is not yours but of uid {STRANGER}: ask as that user or as root" in done.stderr
