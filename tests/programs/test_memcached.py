# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""memcached: several threads with libevent, sendmsg of many pieces."""

import pathlib

import scene as scenes

CLIENT = pathlib.Path(__file__).with_name("memcached_client.py")


def test_memcached(scene):
    port = scene.port()
    scene.server(f"memcached -l {scenes.ADDRESS} -p {port} -U 0 -t 4", port, user="nobody")
    client = scene.write(CLIENT.name, CLIENT.read_text())  # nobody may not enter every directory that these tests lie in
    said = scene.client(f"{scenes.PYTHON} {client} {scenes.ADDRESS} {port}", user="nobody")
    assert "every value is right" in said
