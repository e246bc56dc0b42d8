# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections leave direct mode in the midst of a transfer, by every way there is, and lose no octet. Who has not
asked for direct mode has none of it."""

import pathlib
import sys

import pytest

import conftest
import direct_load
from test_sockets_scenes import environment

LOAD = pathlib.Path(direct_load.__file__)


@pytest.mark.parametrize("mode", ["on", "off", None])
@pytest.mark.parametrize("way", direct_load.WAYS)
def test_way(way, mode, tmp_path):
    env = environment(tmp_path, "on")
    env.pop("ANYWARP_SOCKETS_DIRECT")
    if mode:
        env["ANYWARP_SOCKETS_DIRECT"] = mode
    port = conftest.program.free_port()
    ends = []
    try:
        for args in (["echo", str(port)], ["through", str(port), way]):
            ends.append(conftest.program.Program([sys.executable, str(LOAD), *args], env=env))
            if len(ends) == 1:
                ends[0].wait_listening(port)
        assert ends[1].wait_exit() == 0, "\n".join(end.report() for end in ends)
        assert ends[0].wait_exit() == 0, ends[0].report()
    finally:
        for end in ends:
            end.close()
