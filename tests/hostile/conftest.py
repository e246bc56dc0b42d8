# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One victim for all the tests of a file: it must survive each of them. ctest sets ANYWARP_BUILD,
and for a sanitizer build ANYWARP_SAN. Under tests/kernel/run the victim is a program over the kernel module."""

import os
import pathlib
import resource
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/system", "tools/lib", "tests/kernel")]
sys.dont_write_bytecode = True

import ground  # noqa: E402
from attacker import Victim  # noqa: E402

if ground.KERNEL:
    from over_module import device, kernel, no_complaint  # noqa: E402, F401

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --hostile")


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    victim = Victim(os.environ["ANYWARP_BUILD"], tmp_path_factory.mktemp("victim"))
    yield victim
    victim.quit()


@pytest.fixture
def victim(process):
    """The process, unharmed before a test and after it."""
    before = process.honest_rounds()
    yield process
    assert process.ask("check") == "ok"
    process.wait_honest(before)


@pytest.fixture
def own_victim(tmp_path):
    """A process of one test's own, unharmed by it."""
    process = Victim(os.environ["ANYWARP_BUILD"], tmp_path)
    yield process
    assert process.ask("check") == "ok"
    process.wait_honest(process.honest_rounds())
    process.quit()


@pytest.fixture(scope="module")
def many_files():
    """This process may have as many files as the system lets it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
