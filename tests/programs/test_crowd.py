# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""1,000 connections at once through one process and its epoll, level- and edge-triggered."""

import pathlib

import pytest
import scene as scenes

HERE = pathlib.Path(__file__).parent
CONNECTIONS = 1000


@pytest.mark.parametrize("trigger", ["level", "edge"])
def test_a_thousand_connections(scene, trigger):
    port = scene.port()
    scene.server(f"{scenes.PYTHON} {HERE}/crowd_server.py {scenes.ADDRESS} {port} {trigger}", port)
    said = scene.client(f"{scenes.PYTHON} {HERE}/crowd_client.py {scenes.ADDRESS} {port} {CONNECTIONS}")
    assert f"{CONNECTIONS} connections are right" in said
    assert scene.tap.seen(port).opened == CONNECTIONS
