# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""UCX's utilities. It takes no iWARP device, so all of this is the roce persona's."""

import re

import pytest

pytestmark = [pytest.mark.program("UCX: ucx_info, ucx_perftest (rc_verbs, ud_verbs)"),
              pytest.mark.personas("roce")]

# All that ucx_perftest has, first those of UCP.
ATOMICS = ["ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"]
TESTS = ["tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", *ATOMICS,
         "stream_bw", "stream_lat", "ucp_am_lat", "ucp_am_bw"]
# UCX's wire-up is over UD; without the list it would find the peer by shared memory.
TRANSPORTS = {"rc": "rc_verbs,ud_verbs", "ud": "ud_verbs"}
# Those of UCT, where the transport is used by itself, and how the octets are handed over. A "swap" is no verb.
RC_LAYOUTS = {"am_lat": "short bcopy zcopy", "am_bw": "short bcopy zcopy", "put_lat": "short bcopy zcopy",
              "put_bw": "short bcopy zcopy", "get": "bcopy zcopy", "add_lat": "short", "add_mr": "short",
              "fadd": "short", "cswap": "short"}
UD_LAYOUTS = {"am_lat": "short bcopy zcopy", "am_bw": "short bcopy zcopy"}
COUNT = 500


def layouts(transport, tests):
    return [(transport, test, layout) for test, how in tests.items() for layout in how.split()]


@pytest.mark.one_host
def test_ucx_info(scene):
    printed = scene.run("ucx_info -d")
    for transport in TRANSPORTS:
        assert re.search(rf"Transport: {transport}_verbs\n#\s+Device: anywarp0:1", printed)
    assert re.search(r"atomic_cswap: 64 bit\n", printed)  # the device's own, not UCP's


def perftest(scene, transport, options, size, **env):
    port = scene.port()
    server = scene.server(f"ucx_perftest -p {port}", port, **env)
    client = scene.client(f"ucx_perftest -p {port} {scene.address} -s {size} -n {COUNT} -w 10 {options}", **env)
    scene.ends_well(client, server)
    assert "ERROR" not in client.output() + server.output()
    assert re.search(rf"(?m)^Final: +{COUNT} ", client.output())
    if transport == "rc":
        scene.carried(octets=COUNT * size)
    else:
        scene.carried_datagrams(COUNT)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.reports("source-changed", "sink-written", "memory-freed", "qp-destroyed", "registered-freed")
def test_ucp(scene, transport, test):
    perftest(scene, transport, f"-t {test}", 8 if test in ATOMICS else 4096,
             UCX_TLS=TRANSPORTS[transport], UCX_NET_DEVICES="anywarp0:1")


@pytest.mark.parametrize("transport, test, layout", layouts("rc", RC_LAYOUTS) + layouts("ud", UD_LAYOUTS))
@pytest.mark.reports("source-changed", "sink-written", "memory-freed", "qp-destroyed", "registered-freed")
def test_uct(scene, transport, test, layout):
    options = f"-d anywarp0:1 -x {transport}_verbs -t {test} -D {layout}"
    perftest(scene, transport, options, 8 if layout == "short" else 512)
