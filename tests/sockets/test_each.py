# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each wrapper at places where a program seldom calls it."""

import sys

import conftest
import pytest

TESTS = conftest.BUILD / "tests"
ECHO = conftest.ROOT / "tests" / "sockets" / "echo_server.py"
SECONDS_MAX = conftest.program.SECONDS_MAX


def start_server(mode):
    return mode.start([sys.executable, ECHO, "epoll"]).wait_output(r"port (\d+)")[1]


def run_to_end(mode, *argv):
    run = mode.start(argv)
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    return run.output()


@pytest.mark.parametrize("mode", conftest.MODES_AND_AUTO, indirect=True)
def test_before_any_constructor(mode):
    """So early libc itself has no environment; the rules hold all the same, and an inherited connection goes on."""
    assert "used and inherited" in run_to_end(mode, TESTS / "each_preinit", start_server(mode))


@pytest.mark.parametrize("mode", conftest.MODES_AND_AUTO, indirect=True)
def test_in_the_constructor_of_a_library_that_the_program_needs(mode):
    assert "used" in run_to_end(mode, TESTS / "each_needs", start_server(mode))


DEPTH_MAX = 2048 # bytes


def depths_of_uses(mode):
    """How much stack each use takes, with libc's part."""
    output = run_to_end(mode, TESTS / "each_small", start_server(mode))
    pairs = [line.split() for line in output.splitlines() if len(line.split()) == 2]
    return {name: max(int(depth) for other, depth in pairs if other == name) for name, _ in pairs}


@pytest.mark.skipif(bool(conftest.SANITIZER), reason="a sanitizer's frames are larger")
@pytest.mark.parametrize("mode", [mode for mode in conftest.MODES_AND_AUTO if mode != "plain"], indirect=True)
def test_on_the_smallest_stack(mode, plain):
    """The kernel's frame for a signal, with all registers, is not ours."""
    frame = depths_of_uses(plain)["signal"]
    deep = {name: depth for name, depth in depths_of_uses(mode).items()
            if depth > DEPTH_MAX + (frame if name == "signal" else 0)}
    assert not deep, deep


def test_execl_with_many_arguments(mode):
    assert run_to_end(mode, TESTS / "many").split() == ["5000", "5000"]
