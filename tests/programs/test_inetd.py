# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""openbsd-inetd: accept, fork, another user, and exec of a program that knows nothing of sockets;
also one that is given the listener itself."""

import getpass

import pytest
import scene as scenes

OCTETS = 4_000_007
WAIT_SERVICE = """
import socket
listener = socket.socket(fileno=0)
for _ in range(2):
    link, _ = listener.accept()
    with link, link.makefile("rwb") as file:
        file.write(file.readline().upper())
"""


def inetd(scene, service, kind="nowait", user=None, **env):
    port = scene.port()
    line = f"{scenes.ADDRESS}:{port} stream tcp {kind} {user or getpass.getuser()} {service}\n"
    scene.server(f"/usr/sbin/inetd -i -E {scene.write('inetd.conf', line)}", port, **env)
    return port


def talk(scene, port, sent):
    got = f"{sent}.got"
    scene.client(["sh", "-c", f"socat -t 30 - TCP4:{scenes.ADDRESS}:{port} <{sent} >{got}"])
    return got


@pytest.mark.parametrize("user", [None, "nobody"])
def test_cat(scene, user):
    sent = scene.file("sent", OCTETS)
    port = inetd(scene, "/bin/cat cat", user=user if getpass.getuser() == "root" else None)
    for _ in range(3):
        assert scenes.same_file(sent, talk(scene, port, sent))


@pytest.mark.parametrize("octets", [0, 1, OCTETS])
def test_the_answer_comes_after_the_end_of_the_question(scene, octets):
    sent = scene.file("sent", octets)
    port = inetd(scene, "/usr/bin/sha256sum sha256sum")
    wanted = scene.client(["sh", "-c", f"sha256sum <{sent}"], rule=None)
    with open(talk(scene, port, sent), encoding="ascii") as file:
        assert file.read() == wanted


def test_a_shell_and_its_children_share_the_connection(scene):
    """What the shell and each child of it write comes in order."""
    script = scene.write("script", "read first; echo $first; (echo two; echo three); "
                                   "sh -c 'echo four'; cat; echo $$ >&2\n")
    sent = scene.write("sent", "one\nfive\n")
    with open(talk(scene, inetd(scene, f"/bin/sh sh {script}"), sent), encoding="ascii") as file:
        assert file.read().split()[:-1] == ["one", "two", "three", "four", "five"]


def test_log_lines_stay_out_of_the_connection(scene):
    """A service's standard error is the connection, too."""
    sent = scene.file("sent", OCTETS)
    port = inetd(scene, "/bin/cat cat", ANYWARP_LOG="debug")
    assert scenes.same_file(sent, talk(scene, port, sent))


def test_a_service_that_accepts_itself(scene):
    """wait: fd 0 is the listener, and the program did not open it."""
    service = scene.write("service.py", WAIT_SERVICE)
    port = inetd(scene, f"{scenes.PYTHON} python3 {service}", kind="wait")
    sent = scene.write("sent", "hello\n")
    for _ in range(4):
        with open(talk(scene, port, sent), encoding="ascii") as file:
            assert file.read() == "HELLO\n"
