# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Ways by which a program's calls would pass the library by."""

import errno
import sys

import conftest
import pytest

TESTS = conftest.BUILD / "tests"
ECHO = conftest.ROOT / "tests" / "sockets" / "echo_server.py"
SECONDS_MAX = conftest.program.SECONDS_MAX
SAID = {"deep": "without RTLD_DEEPBIND", "apart": "no connection is a record from now on"}


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="a sanitizer's library has its own dlopen, and refuses deep and apart")
@pytest.mark.parametrize("way", ["now", "deep", "apart"])
def test_module(mode, way):
    """libc finds the module by the program's own search path, and its reads and writes are the connection's."""
    server = mode.start([sys.executable, ECHO, "epoll"])
    port = server.wait_output(r"port (\d+)")[1]
    run = mode.start([TESTS / "unseen", port, way], ANYWARP_LOG="info")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    for each, words in SAID.items():
        assert (words in run.output()) == (mode.name == "iwarp" and each == way), run.report()


@pytest.mark.parametrize("mode", conftest.MODES_AND_AUTO, indirect=True)
def test_aio(mode):
    """io_submit(2) is to a program in mode `on` what it is on a kernel without it."""
    run = mode.start([TESTS / "unseen", "aio"])
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    assert run.output().split()[-1] == str(errno.ENOSYS if mode.name == "iwarp" else 0)
