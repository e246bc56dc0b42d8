# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""This distribution's RDMA programs and providers on the libraries that were built here, and on those that were
built outside, in an older distribution."""

import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT

PROGRAMS = ["rping", "ucmatose", "ib_write_bw", "ibv_devinfo"]
LIBRARIES = ["libibverbs.so.1", "librdmacm.so.1"]
# Loads a library, and prints which libibverbs that brought.
LOAD = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1], os.RTLD_NOW)
print({line.split()[-1] for line in open("/proc/self/maps") if "libibverbs.so" in line})
"""


def providers():
    """The plug-ins, and those that programs link with."""
    files = subprocess.run(["dpkg-query", "-L", "ibverbs-providers"], capture_output=True, text=True,
                           check=True).stdout.split()
    return [pathlib.Path(file) for file in files if ".so" in file]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_has_the_libraries(build, name):
    """What the programs are run with below."""
    said = subprocess.run([build / "bin" / "anywarp", "run", "--", "sh", "-c", f"ldd -r $(command -v {name})"],
                          capture_output=True, text=True, check=True)
    text = said.stdout + said.stderr
    assert f"{LIBRARIES[0]} => {build}/lib/" in text, text
    assert "undefined" not in text and "not found" not in text, text


def test_demo(build, yardstick):
    done = subprocess.run([sys.executable, "-B", ROOT / "tools" / "demo" / "demo.py", build, yardstick],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


def test_providers_load(build):
    """Beside our libibverbs, which is to have each name that they want of it."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib")}
    wrong = []
    for path in providers():
        loaded = subprocess.run([sys.executable, "-c", LOAD, path], env=env,
                                capture_output=True, text=True)
        if loaded.returncode or f"{build}/lib/libibverbs.so.1" not in loaded.stdout:
            wrong.append(f"{path.name}: {loaded.stdout}{loaded.stderr}")
    assert not wrong, "\n".join(wrong)
    assert len(providers()) > 10
