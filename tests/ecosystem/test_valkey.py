# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Valkey over its own RDMA, and the client of its runtest-rdma. No package has Valkey's RDMA module: ANYWARP_VALKEY names a
directory of its source, where `make BUILD_RDMA=module` and `make -C tests/rdma` have been run."""

import os
import pathlib

import pytest

SOURCE = os.environ.get("ANYWARP_VALKEY")
THREADS = 4
OCTETS = 1 << 20  # far less than the client sets and gets


def built(name):
    if not SOURCE:
        pytest.skip("ANYWARP_VALKEY names no directory of Valkey's source")
    path = pathlib.Path(SOURCE).resolve() / name
    if not path.exists():
        pytest.skip(f"not built: {path}")
    return path


@pytest.mark.program("Valkey")
@pytest.mark.reports("mr-deregistered", "leak")
def test_valkey(scene):
    port = scene.port()
    module = f"{built('src/valkey-rdma.so')} port={port} bind={scene.address}"
    server = scene.server(f"{built('src/valkey-server')} --port 0 --protected-mode no --save '' --dir {scene.folder} "
                          f"--loadmodule {module}", port)
    client = scene.client(f"{built('tests/rdma/rdma-test')} --thread {THREADS} -h {scene.address} -p {port}")
    scene.ends_well(client)
    told = client.output()
    assert "Valkey Over RDMA test [OK]" in told
    assert told.count("PING/PONG [OK]") == THREADS
    assert server.status() is None, "the server has ended"
    scene.carried(connections=THREADS, octets=OCTETS)
