# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""node's http at both ends: libuv's epoll, writes of many pieces, connections that are kept and that are not."""

import pathlib
import shutil

import pytest
import scene as scenes

PROGRAM = pathlib.Path(__file__).with_name("web_node.js")
pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="nodejs is not installed")


def test_http(scene):
    port, files = scene.port(), scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    scene.server(f"node {PROGRAM} serve {scenes.ADDRESS} {port} {files}", port)
    said = scene.client(f"node {PROGRAM} fetch {scenes.ADDRESS} {port} {files}")
    assert "every answer is right" in said
