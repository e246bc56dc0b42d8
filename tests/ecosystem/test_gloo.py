# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Gloo's ibverbs transport (libgloo-dev), which polls a completion channel with O_NONBLOCK and gets an event where it is readable.
Three ranks of gloo_check.cc, which compares every result; on two hosts the second is on the far one."""

import pathlib
import re

import pytest

RANKS = 3


@pytest.mark.program("Gloo (ibverbs)")
@pytest.mark.personas("roce")
@pytest.mark.reports("source-changed", "registered-freed")
def test_collectives(scene):
    if not pathlib.Path("/usr/include/gloo/transport/ibverbs/device.h").exists():
        pytest.skip("not installed: libgloo-dev")
    check = scene.compiled("g++ -std=c++17 -O1", "gloo_check.cc", "-lgloo")
    meeting = scene.folder / "meeting"
    meeting.mkdir()
    ranks = [scene.start([check, meeting, rank, RANKS], far=rank == 1) for rank in range(RANKS)]
    scene.ends_well(*ranks)
    octets = [int(re.search(r"compared (\d+) octets", rank.output()).group(1)) for rank in ranks]
    scene.carried(connections=RANKS, octets=octets[0])
