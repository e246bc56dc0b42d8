# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A number that changes its file while other threads use it (churn.c): by close, dup2 and their kin. Every word of every
connection is right, as with TCP, and no thread hangs."""

import os

import conftest
import pytest

CHURN = conftest.BUILD / "tests" / "churn"
MS = int(os.environ.get("ANYWARP_CHURN_MS", 400))
SECONDS_MAX = conftest.program.SECONDS_MAX


@pytest.mark.parametrize("way,job", [("close", "read"), ("close", "write"), ("close", "poll"), ("syscall", "read"),
                                     ("range", "write"), ("signalled", "read"), ("dup2", "read"), ("dup2", "write"), ("dup2", "poll"),
                                     ("dup3", "read"), ("copy", "write")])
def test_number_changes_its_file(mode, way, job):
    server = mode.start([CHURN, "serve", way, job, MS])
    port = server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1]
    client = mode.start([CHURN, "feed", port, job, way])
    assert server.wait_exit(SECONDS_MAX + MS / 1000) == 0, server.report()
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
