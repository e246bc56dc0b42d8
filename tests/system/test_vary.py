# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp check --vary SEED' on a program that knows nothing of it: a receive keeps its place until its completion is polled."""

import errno
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = str(BUILD / "bin" / "anywarp")
ROOM = str(BUILD / "tests" / "vary_room")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("ANYWARP_", "LD_"))}


def check(*command):
    return subprocess.run([ANYWARP, "check", "--rules", "none", *command], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)


def test_the_device_frees_the_place_as_the_receive_is_taken():
    done = check("--", ROOM)
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_receive_keeps_its_place_until_its_completion_is_polled(seed):
    done = check("--vary", seed, "--", ROOM)
    assert (done.returncode, done.stdout) == (0, f"{errno.ENOMEM} 0\n"), done.stderr
    assert "the RQ is full" in done.stderr
