# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs that make a ring by liburing: its requests would move the octets of MPA as data."""

import errno
import subprocess

import conftest
import pytest

URING = conftest.BUILD / "tests" / "uring"
REFUSED = f"{-errno.ENOSYS} {-errno.ENOSYS}"


def results(mode):
    run = mode.start([URING])
    assert run.wait_exit() == 0, run.report()
    return run.output().splitlines()[-1]


@pytest.mark.parametrize("mode", conftest.MODES_AND_AUTO, indirect=True)
def test_ring(mode):
    """A program that may have a socket in iWARP mode finds no io_uring; any other finds what the kernel has."""
    if not URING.exists():
        pytest.skip("no liburing here")
    kernels = subprocess.run([URING], capture_output=True, text=True, check=True,
                             env={"ASAN_OPTIONS": "detect_leaks=0"}).stdout.strip()
    if kernels == REFUSED:
        pytest.skip("no io_uring here")
    assert results(mode) == (REFUSED if mode.name == "iwarp" else kernels)
