# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""aiohttp on uvloop at both ends: libuv's epoll without Python's sockets, HTTP that is kept open and WebSockets."""

import pathlib

import scene as scenes

PROGRAM = pathlib.Path(__file__).with_name("web_uvloop.py")


def test_web(scene):
    port, files = scene.port(), scene.directory("files")
    for octets in scenes.SIZES:
        scenes.random_file(files / f"file{octets}", octets)
    scene.server(f"{scenes.PYTHON} {PROGRAM} serve {scenes.ADDRESS} {port} {files}", port)
    said = scene.client(f"{scenes.PYTHON} {PROGRAM} fetch {scenes.ADDRESS} {port} {files}")
    assert "every answer is right" in said
