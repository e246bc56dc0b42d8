# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""libfabric's utilities over its verbs provider: messages, and reliable datagrams by RxM."""

import pytest

SIZES_SUM = 64 + 256 + 1024 + 4096 + 65536 + 1048576  # what fi_pingpong goes through
ENDS = {"verbs": "msg", "verbs;ofi_rxm": "rdm"}

pytestmark = pytest.mark.program("libfabric: fi_info, fi_pingpong (verbs, verbs;ofi_rxm)")


@pytest.mark.one_host
@pytest.mark.parametrize("provider", ENDS)
def test_fi_info(scene, provider):
    printed = scene.run(["fi_info", "-p", provider])
    assert f"provider: {provider}\n" in printed and "domain: anywarp0" in printed


@pytest.mark.parametrize("options", ["-I 20", "-I 3 -S all"])
@pytest.mark.parametrize("provider", ENDS)
@pytest.mark.reports("status-ignored", "leak")
def test_fi_pingpong(scene, provider, options):
    """-c compares every octet that came."""
    port = scene.port()
    line = ["fi_pingpong", "-p", provider, "-e", ENDS[provider], "-c", *options.split()]
    server = scene.server([*line, "-B", port], port)
    client = scene.client([*line, "-P", port, scene.address])
    scene.ends_well(client, server)
    assert "1m" in client.output()
    scene.carried(octets=2 * 3 * SIZES_SUM)
