# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Java NIO at both ends: epoll by a Selector, connects that do not block, gathering writes. Java's sockets may be of IPv6's
kind, too. And threads that close sockets where others read and write."""

import os
import pathlib
import shutil

import pytest
import scene as scenes

PROGRAM = pathlib.Path(__file__).with_name("Nio.java")
CLOSE = pathlib.Path(__file__).with_name("Close.java")
CONNECTIONS = int(os.environ.get("ANYWARP_JAVA_CONNECTIONS", "1000"))  # an even number; each is closed by another thread
SECONDS_MAX = max(scenes.SECONDS_MAX, CONNECTIONS / 50)
pytestmark = pytest.mark.skipif(not shutil.which("javac"), reason="default-jdk-headless is not installed")


@pytest.mark.parametrize("family", ["", "-Djava.net.preferIPv4Stack=true"], ids=["both", "ipv4"])
def test_nio(scene, family):
    port = scene.port()
    scene.server(f"java -Xshare:auto {family} {PROGRAM} serve {scenes.ADDRESS} {port}", port)
    said = scene.client(f"java -Xshare:auto {family} {PROGRAM} talk {scenes.ADDRESS} {port}")
    assert "every connection is right" in said


def test_close_by_another_thread(scene):
    port = scene.port()
    server = scene.server(f"java -Xshare:auto {CLOSE} serve {scenes.ADDRESS} {port} {CONNECTIONS}", port)
    client = scene.start(f"java -Xshare:auto {CLOSE} talk {scenes.ADDRESS} {port} {CONNECTIONS}", scene.mode.client)
    for started in (client, server):
        assert started.wait_exit(SECONDS_MAX) == 0, started.report()
        assert f"{CONNECTIONS // 2} closed, every connection is right" in started.output()
    scene.judge(port, unused=True)  # a client may have closed a connection before the server looked at it
