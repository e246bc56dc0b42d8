# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the command 'anywarp sockets' as a user would. ANYWARP_BUILD names the build directory."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
LIBDIR = BUILD / "lib"
LIBRARY = LIBDIR / "libanywarp-sockets.so"
# A sanitizer's run-time library has to be in programs that were built without it.
PRELOADED = {"LD_PRELOAD": os.environ.get("ANYWARP_PRELOAD", ""),
             "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
             } if os.environ.get("ANYWARP_SAN") else {}

needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="no libanywarp-sockets.so")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


def sockets(*args, command=ANYWARP, user=None, **env):
    return subprocess.run([str(command), "sockets", *map(str, args)], capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL, user=user,
                          env={**os.environ, **env}, check=False)
