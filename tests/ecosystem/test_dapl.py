# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""uDAPL's dtest (dapl2-utils): its provider `cma` connects by rdma_cm, `scm` by sockets and ibv_modify_qp."""

import pytest

HELLO_PORT = 15828  # the server tells the client there, by TCP, where to connect
PROVIDERS = {"cma": "libdaplofa.so.2 dapl.2.0 \"aw0 0\"", "scm": "libdaploscm.so.2 dapl.2.0 \"anywarp0 1\""}


def dtest(scene, provider, options, octets):
    registry = scene.folder / "dat.conf"
    registry.write_text(f'{provider} u2.0 nonthreadsafe default {PROVIDERS[provider]} ""\n', encoding="ascii")
    line = f"dtest -P {provider} {options}"
    server = scene.server(f"{line} -s", HELLO_PORT, DAT_OVERRIDE=registry)
    client = scene.client(f"{line} -h {scene.address}", DAT_OVERRIDE=registry)
    scene.ends_well(client, server)
    for end in (client, server):
        assert "DAPL Test Complete. PASSED" in end.output()
    scene.carried(octets=octets)


OPTIONS = pytest.mark.parametrize("options, octets", [("-b 65536", 2 * 100 * 65536), ("-b 65536 -W -D", 2 * 65536),
                                                      ("-b 4096 -c", 2 * 100 * 4096), ("-b 4096 -p", 2 * 100 * 4096)])


@pytest.mark.program("uDAPL: dtest over rdma_cm (cma)")
@OPTIONS
@pytest.mark.reports("mr-deregistered")
def test_over_rdma_cm(scene, options, octets):
    dtest(scene, "cma", options, octets)


@pytest.mark.program("uDAPL: dtest over sockets (scm)")
@pytest.mark.personas("roce")
@OPTIONS
@pytest.mark.reports("mr-deregistered")
def test_over_sockets(scene, options, octets):
    dtest(scene, "scm", options, octets)
