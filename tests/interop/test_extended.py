# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Extended sockets where an end has rdma-core's libraries and a kernel's device: the example, at one of the two ends,
in either role, and at both; and scenes of system/extended.c. The libraries of the extended calls are ours everywhere."""

import sysconfig

import conftest
import ends
import pytest

# Either end of a stream may send first.
pytestmark = pytest.mark.usefixtures("peer_to_peer")
# Of system/extended.c; the others pass as well, and are of user space: writes, many, socket, leaves.
SCENES = ("reads", "sends", "receives", "limits", "access", "killed")
TEXT = "so_be_it"
ONESIDED, EXTENDED = (str(conftest.BUILD / name) for name in ("examples/onesided", "tests/system_extended"))
# The programs' run path is our build's, which has our libibverbs and librdmacm, too.
DISTRIBUTION_S = f"env LD_LIBRARY_PATH=/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"


def start(end, line):
    return end.start(line if end.kind == ends.USER else f"{DISTRIBUTION_S} {line}")


def play(port, server, client):
    started = [start(server, f"{ONESIDED} {port}")]
    try:
        started[0].wait_listening(port, ends.SECONDS_MAX)
        started.append(start(client, f"{ONESIDED} {port} {server.address} {TEXT}"))
        for each in reversed(started):
            assert each.wait_exit(ends.SECONDS_MAX) == 0, "\n".join(one.report() for one in started)
        assert f"the client wrote: {TEXT}" in started[0].output()
    finally:
        for each in started:
            each.close()


def test_both_ends_on_theirs(theirs, port):
    play(port, theirs, theirs)


def test_theirs_serve(theirs, ours, port):
    play(port, theirs, ours)


def test_ours_serve(theirs, ours, port):
    play(port, ours, theirs)


@pytest.mark.parametrize("scene", SCENES)
def test_scene_on_theirs(theirs, scene):
    program = start(theirs, f"env ANYWARP_TEST_ADDRESS={theirs.address} {EXTENDED} {scene}")
    try:
        assert program.wait_exit(ends.SECONDS_MAX) == 0, program.report()
    finally:
        program.close()
