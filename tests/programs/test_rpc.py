# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An ONC RPC service as rpcgen writes it, over libtirpc: poll, records of many fragments."""

import pathlib
import shutil
import subprocess

import pytest
import scene as scenes

SOURCES = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def programs():
    """The directory with the server and the client."""
    folder = scenes.new_folder()
    for name in ("echo.x", "echo_server.c", "echo_client.c"):
        shutil.copy(SOURCES / name, folder)

    def run(line):
        subprocess.run(["sh", "-ec", line], cwd=folder, check=True)

    for option, output in (("-h", "echo.h"), ("-c", "xdr.c"), ("-m", "svc.c"), ("-l", "clnt.c")):
        run(f"rpcgen {option} -o {output} echo.x")
    flags = "$(pkg-config --cflags --libs libtirpc)"
    run(f"cc -w -o server echo_server.c svc.c xdr.c {flags}")
    run(f"cc -w -o client echo_client.c clnt.c xdr.c {flags}")
    yield folder
    shutil.rmtree(folder)


def test_rpc(scene, programs):
    port = scene.port()
    scene.server(f"{programs}/server {port}", port)
    for _ in range(3):
        assert "every answer is right" in scene.client(f"{programs}/client {port}")


def test_a_client_that_dies_leaves_the_service_alone(scene, programs):
    """In the midst of a record: the server waits for the rest of it, and serves others."""
    port = scene.port()
    scene.server(f"{programs}/server {port}", port)
    half = f"import socket; s = socket.create_connection(('{scenes.ADDRESS}', {port})); s.send(b'\\0'*9)"
    scene.client([scenes.PYTHON, "-c", f"{half}; import os; os.kill(os.getpid(), 9)"], status=-9)
    assert "every answer is right" in scene.client(f"{programs}/client {port}")
    scene.judge(port, silent=True)
