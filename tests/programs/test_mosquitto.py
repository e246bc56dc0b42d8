# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""mosquitto: a broker with an epoll loop, clients that publish and clients that wait for what is published."""

import pytest
import scene as scenes

CONFIGURATION = """
listener {port} {address}
allow_anonymous true
persistence false
log_dest stderr
log_type subscribe
user {user}
max_queued_messages 0
"""
SUBSCRIBERS = 5


@pytest.fixture
def broker(scene):
    """The scene with the broker in it: how its clients find it."""
    port = scene.port()
    path = scene.write("mosquitto.conf", CONFIGURATION.format(port=port, address=scenes.ADDRESS, user="root" if scene.mode.pair else "mosquitto"))
    scene.broker = scene.server(f"mosquitto -c {path}", port)
    return f"-h {scenes.ADDRESS} -p {port}"


def subscribe(scene, broker, number, count, qos):
    """Starts a client that writes what comes into a file, and waits until the broker knows it."""
    got = scene.folder / f"got{number}"
    started = scene.start(["sh", "-c", f"exec mosquitto_sub {broker} -i sub{number} -q {qos} -C {count} -N -t news "
                           f">{got}"], scene.mode.client)
    scene.broker.wait_output(rf"sub{number} {qos} news")
    return started, got


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_all_subscribers_get_all(scene, broker, qos):
    """Messages of every size, in order."""
    files = [scene.file(f"message{octets}", octets) for octets in scenes.SIZES if octets]
    subscribers = [subscribe(scene, broker, number, len(files), qos) for number in range(SUBSCRIBERS)]
    for path in files:
        scene.client(f"mosquitto_pub {broker} -q {qos} -t news -f {path}")
    whole = b"".join(path.read_bytes() for path in files)
    for started, got in subscribers:
        assert started.wait_exit() == 0
        assert got.read_bytes() == whole


def test_a_line_a_message(scene, broker):
    """One connection with many small messages, each acknowledged."""
    lines = scene.write("lines", "".join(f"line {number}\n" for number in range(2000)))
    started, got = subscribe(scene, broker, 0, 2000, 1)
    scene.client(["sh", "-c", f"mosquitto_pub {broker} -q 1 -t news -l <{lines}"])
    assert started.wait_exit() == 0
    assert got.read_text() == lines.read_text().replace("\n", "")
