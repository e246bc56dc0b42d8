# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""System calls that do not go through the C library: what libanywarp-sockets(7) says of them, and its remedies."""

import conftest
import program
import pytest

RAW = conftest.BUILD / "tests" / "raw"


def result(mode, *port):
    run = mode.start([RAW, *port])
    assert run.wait_exit() == 0, run.report()
    said = run.output().splitlines()[-1]
    if said == "unknown machine":
        pytest.skip("the program has no system call of its own for this machine")
    return said


@pytest.mark.parametrize("mode", ["plain", "pass", "proxy"], indirect=True)
def test_read_gets_the_programs_bytes(mode):
    """As TCP, by the rule off, and by ANYWARP_SOCKETS_RECORD=off."""
    assert result(mode) == "hello"


def test_read_gets_the_fpdus_of_a_record(only_iwarp):
    assert result(only_iwarp, program.free_port()) == "other bytes"
