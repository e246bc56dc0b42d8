# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two builds of anywarp: of this distribution, and of the machine around it. ctest sets ANYWARP_BUILD, and
tests/distro/enter ANYWARP_OTHER_BUILD; ./dev test --distro does both."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ANYWARP_BUILD" not in os.environ:
    sys.exit("ANYWARP_BUILD is not set: use ./dev test --distro")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()


@pytest.fixture(params=["this_build", "other_build"])
def build(request):
    """The directory of a build."""
    if request.param == "this_build":
        return BUILD
    other = os.environ.get("ANYWARP_OTHER_BUILD")
    if not other:
        pytest.skip("no build of another distribution: use ./dev test --distro")
    return pathlib.Path(other)


@pytest.fixture
def yardstick(tmp_path):
    """The program that measures TCP for the demo."""
    path = tmp_path / "tcp_yardstick"
    subprocess.run(["cc", "-O2", "-o", path, ROOT / "tools" / "demo" / "tcp_yardstick.c"], check=True)
    return path
