# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Python's own servers and clients: threads with blocking sockets and time-outs (which make them
non-blocking with poll), asyncio's epoll, fd passing."""

import pathlib

import pytest
import scene as scenes
from scene import PYTHON

HERE = pathlib.Path(__file__).parent
WORKER = """
import socket
channel = socket.socket(fileno=0)
for _ in range(3):
    _, (fd,), _, _ = socket.recv_fds(channel, 1, 1)
    with socket.socket(fileno=fd) as link, link.makefile("rwb") as file:
        file.write(file.readline().upper())
"""
ACCEPTOR = """
import socket, subprocess, sys
ours, theirs = socket.socketpair()
worker = subprocess.Popen([sys.executable, "worker.py"], stdin=theirs)
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
for _ in range(3):
    link, _ = listener.accept()
    with link:
        socket.send_fds(ours, [b"!"], [link.fileno()])
sys.exit(worker.wait())
"""


def test_http_server_and_urllib(scene):
    port, files = scene.port(), scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    scene.server(f"{PYTHON} -m http.server {port} --bind {scenes.ADDRESS} --directory {files}", port)
    said = scene.client(f"{PYTHON} {HERE}/http_client.py http://{scenes.ADDRESS}:{port}/ {files}")
    assert "18 files are right" in said


def test_asyncio(scene):
    port = scene.port()
    scene.server(f"{PYTHON} {HERE}/stream_server.py {scenes.ADDRESS} {port}", port)
    said = scene.client(f"{PYTHON} {HERE}/stream_client.py {scenes.ADDRESS} {port}")
    assert "every stream is right" in said


def test_a_connection_is_handed_to_another_process(scene):
    """By SCM_RIGHTS, before its first octet, to a process that did not accept it."""
    port = scene.port()
    scene.write("worker.py", WORKER)
    acceptor = scene.write("acceptor.py", ACCEPTOR)
    server = scene.server(f"{PYTHON} {acceptor} {scenes.ADDRESS} {port}", port)
    sent = scene.write("sent", "hello\n")
    for _ in range(3):
        said = scene.client(["sh", "-c", f"socat -t 30 - TCP4:{scenes.ADDRESS}:{port} <{sent}"])
        assert said == "HELLO\n"
    assert server.wait_exit() == 0


@pytest.mark.parametrize("size", [1, 1460, 100_000])
def test_a_server_that_dies_is_an_end_for_its_client(scene, size):
    """_exit in the midst of a stream: what was sent arrives, then the end or a reset."""
    port = scene.port()
    scene.server([PYTHON, "-c", f"""
import os, socket
listener = socket.create_server(("{scenes.ADDRESS}", {port}))
link, _ = listener.accept()
assert link.recv(1) == b"?"
link.sendall(b"x" * {size})
assert link.recv(1) == b"!"
os._exit(3)
"""], port)
    said = scene.client([PYTHON, "-c", f"""
import socket
link = socket.create_connection(("{scenes.ADDRESS}", {port}))
link.sendall(b"?")
assert link.recv({size}, socket.MSG_WAITALL) == b"x" * {size}
link.sendall(b"!")
try:
    print(link.recv(1))
except ConnectionResetError as error:
    print("reset")
"""])
    assert said.strip() in ("b''", "reset")
