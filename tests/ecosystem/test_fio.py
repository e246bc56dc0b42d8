# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""fio's rdma engine. Its two ends are two jobs; the server's reads what the client's writes."""

import re

import pytest

pytestmark = pytest.mark.program("fio, ioengine=rdma (write, read, send)")
OCTETS = 16 * 2**20


def job(scene, name, verb, port, words):
    lines = [f"[{name}]", "ioengine=rdma", f"hostname={scene.address}", f"port={port}", f"verb={verb}",
             "bs=64k", f"size={OCTETS}", "iodepth=8", *words]
    path = scene.folder / f"{name}.fio"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("verb", ["write", "read", "send"])
@pytest.mark.reports("registered-freed")
def test_verb(scene, verb):
    port = scene.port()
    server_verb = {"send": "recv"}.get(verb, verb)
    server = scene.start(["fio", job(scene, "server", server_verb, port, ["rw=read"])])
    server.wait_output("waiting for connection")
    client = scene.client(["fio", job(scene, "client", verb, port, ["rw=write"])])
    scene.ends_well(client, server)
    for end in (client, server):
        assert re.search(r"err= 0", end.output())
    scene.carried(octets=OCTETS)


def test_send_is_verified(scene):
    """The receiver checks a checksum over each block that came."""
    port = scene.port()
    server = scene.start(["fio", job(scene, "server", "recv", port, ["rw=read", "verify=crc32c"])])
    server.wait_output("waiting for connection")
    words = ["rw=write", "verify=crc32c", "do_verify=0"]
    client = scene.client(["fio", job(scene, "client", "send", port, words)])
    scene.ends_well(client, server)
    assert f"total={OCTETS // 65536}," in server.output()
    scene.carried(octets=OCTETS)
