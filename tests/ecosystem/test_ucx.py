# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""UCX's utilities. It takes no iWARP device, so all of this is the roce persona's."""

import re

import pytest

pytestmark = [pytest.mark.program("UCX: ucx_info, ucx_perftest (rc_verbs, ud_verbs)"),
              pytest.mark.personas("roce")]

TESTS = {"tag_lat": "rc,ud", "tag_bw": "rc,ud", "ucp_put_lat": "rc", "ucp_put_bw": "rc", "ucp_get": "rc",
         "ucp_add": "rc", "ucp_fadd": "rc", "ucp_swap": "rc", "ucp_cswap": "rc", "stream_bw": "rc,ud",
         "stream_lat": "rc,ud", "ucp_am_bw": "rc,ud", "ucp_am_lat": "rc,ud"}
ATOMIC = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
# UCX's wire-up is over UD; without the list it would find the peer by shared memory.
TRANSPORTS = {"rc": "rc_verbs,ud_verbs", "ud": "ud_verbs"}


def test_ucx_info(scene):
    printed = scene.run("ucx_info -d")
    for transport in TRANSPORTS:
        assert re.search(rf"Transport: {transport}_verbs\n#\s+Device: anywarp0:1", printed)


@pytest.mark.xfail(reason="a UD endpoint of UCX hears no answer", run=False)
@pytest.mark.parametrize("transport, test", [(each, test) for test, over in TESTS.items()
                                             for each in over.split(",")])
def test_ucx_perftest(scene, transport, test):
    port = scene.port()
    env = {"UCX_TLS": TRANSPORTS[transport], "UCX_NET_DEVICES": "anywarp0:1"}
    size = 8 if test in ATOMIC else 4096
    server = scene.server(f"ucx_perftest -p {port}", port, **env)
    line = f"ucx_perftest -p {port} {scene.address} -t {test} -s {size} -n 500 -w 10"
    client = scene.start(line, **env)
    scene.ends_well(client, server)
    assert "ERROR" not in client.output() + server.output()
    assert re.search(r"(?m)^Final: +500 ", client.output())
    if transport == "rc":
        scene.carried(octets=500 * size)
    else:
        scene.carried_datagrams(500)
