# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""iperf3: select, bulk data one way and the other, several streams, TCP_INFO."""

import json

import pytest
import scene as scenes

OCTETS = 64 * 2**20


@pytest.mark.parametrize("direction", ["", "--reverse", "--bidir"],
                         ids=["forth", "back", "both"])
def test_iperf3(scene, direction):
    port = scene.port()
    scene.server(f"iperf3 -s -1 -B {scenes.ADDRESS} -p {port}", port)
    said = json.loads(scene.client(
        f"iperf3 -c {scenes.ADDRESS} -p {port} -J -P 2 -n {OCTETS} {direction}"))
    assert "error" not in said
    received = [said["end"].get(name, {}).get("bytes", 0)
                for name in ("sum_received", "sum_received_bidir_reverse")]
    assert sum(received) >= OCTETS // 2, received  # the first to be done ends the others
    assert len(said["end"]["streams"]) == (4 if "bidir" in direction else 2)
    scene.judge(port, silent=True)  # a stream goes one way
