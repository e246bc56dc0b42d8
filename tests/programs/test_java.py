# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Java NIO at both ends: epoll by a Selector, connects that do not block, gathering writes. Java's sockets may be of IPv6's
kind, too."""

import pathlib
import shutil

import pytest
import scene as scenes

PROGRAM = pathlib.Path(__file__).with_name("Nio.java")
pytestmark = pytest.mark.skipif(not shutil.which("javac"), reason="default-jdk-headless is not installed")


@pytest.mark.parametrize("family", ["", "-Djava.net.preferIPv4Stack=true"], ids=["both", "ipv4"])
def test_nio(scene, family):
    port = scene.port()
    scene.server(f"java -Xshare:auto {family} {PROGRAM} serve {scenes.ADDRESS} {port}", port)
    said = scene.client(f"java -Xshare:auto {family} {PROGRAM} talk {scenes.ADDRESS} {port}")
    assert "every connection is right" in said
