# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The property: whatever calls, sizes, waits, processes and order of closing both ends use, each octet
arrives once and in order, and then the end (stream.c). In 'auto' the proxy carries all. ANYWARP_SEED replays a
failed run."""

import os
import random

import conftest
import pytest

STREAM = conftest.BUILD / "tests" / "stream"
RUNS = 40 if conftest.SANITIZER else int(os.environ.get("ANYWARP_RUNS", 400))
SECONDS_MAX = 200 * conftest.program.SLOWNESS


@pytest.mark.parametrize("mode", conftest.MODES_AND_AUTO, indirect=True)
def test_stream(mode):
    seed = os.environ.get("ANYWARP_SEED", random.SystemRandom().randrange(1 << 31))
    runs = 1 if "ANYWARP_SEED" in os.environ else RUNS
    proxy = {"ANYWARP_SOCKETS_RECORD": "off"} if mode.name == "auto" else {}
    run = mode.start([STREAM, "--seed", seed, "--runs", runs], ANYWARP_LOG="info", **proxy)
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
