# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Extended sockets where an end has rdma-core's libraries and siw: the example, at one of the two ends, in either
role, and at both; and scenes of system/extended.c. The libraries of the extended calls are ours everywhere."""

import base64
import gzip

import conftest
import ends
import pytest

FILES = {"lib/libanywarp-sockets.so": "/usr/lib", "lib/libanywarp-xsock.so": "/usr/lib",
         "examples/onesided": "/usr/bin", "tests/system_extended": "/usr/bin"}
# Of system/extended.c; the others pass as well, and take a minute of emulation: writes, many, socket, leaves.
SCENES = ("reads", "sends", "receives", "limits", "access", "killed")
# What one script of the guest's may hold.
PART_OCTETS = 48_000
TEXT = "so_be_it"


def install(guest, source, folder):
    packed = base64.b64encode(gzip.compress(source.read_bytes())).decode()
    target = f"{folder}/{source.name}"
    for at in range(0, len(packed), PART_OCTETS):
        guest.exec(f"cat >>{target}.packed <<end\n{packed[at:at + PART_OCTETS]}\nend")
    guest.exec(f"base64 -d <{target}.packed | gunzip >{target} && chmod 755 {target} && rm {target}.packed")


@pytest.fixture(scope="module")
def equipped(guest):
    for name, folder in FILES.items():
        install(guest, conftest.BUILD / name, folder)
    return guest


def play(port, server, client):
    started = [server.start(f"{binary(server)} {port}")]
    try:
        started[0].wait_listening(port, ends.SECONDS_MAX)
        started.append(client.start(f"{binary(client)} {port} {server.address} {TEXT}"))
        reports = lambda: "\n".join(each.report() for each in started)  # noqa: E731
        assert started[1].wait_exit(ends.SECONDS_MAX) == 0, reports()
        assert started[0].wait_exit(ends.SECONDS_MAX) == 0, reports()
        assert f"the client wrote: {TEXT}" in started[0].output()
    finally:
        for each in started:
            each.close()


def binary(end):
    return "onesided" if isinstance(end, ends.GuestEnd) else str(conftest.BUILD / "examples" / "onesided")


def test_both_ends_on_siw(equipped, port):
    play(port, ends.GuestEnd(equipped), ends.GuestEnd(equipped))


def test_siw_serves(equipped, host, port):
    play(port, ends.GuestEnd(equipped), host)


def test_anywarp_serves(equipped, host, port):
    play(port, host, ends.GuestEnd(equipped))


@pytest.mark.parametrize("scene", SCENES)
def test_scene_on_siw(equipped, scene):
    program = equipped.start(f"env ANYWARP_TEST_ADDRESS={ends.GuestEnd.address} system_extended {scene}")
    try:
        assert program.wait_exit(ends.SECONDS_MAX) == 0, program.report()
    finally:
        program.close()
