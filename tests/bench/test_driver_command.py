# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The command 'anywarp bench' finds the driver and the workers, or says what is missing.
ANYWARP_BUILD names the build directory."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

if "ANYWARP_BUILD" not in os.environ:
    pytest.skip("ANYWARP_BUILD names no build directory", allow_module_level=True)
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()


def bench(*args, command=BUILD / "bin" / "anywarp"):
    return subprocess.run([str(command), "bench", *args], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, check=False)


@pytest.fixture
def elsewhere(tmp_path):
    """A copy of the command and of our libraries alone."""
    for folder in ("bin", "lib"):
        (tmp_path / folder).mkdir()
    shutil.copy(BUILD / "bin" / "anywarp", tmp_path / "bin")
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        shutil.copy(BUILD / "lib" / name, tmp_path / "lib")
    return tmp_path


def test_the_driver_is_found_and_gets_the_arguments():
    done = bench("--short", "--list", "--only", "hotspot")
    assert (done.returncode, done.stdout) == (0, "hotspot/loopback/512\n"), done.stderr


def test_without_the_driver_it_says_where_it_looked(elsewhere):
    done = bench("--short", command=elsewhere / "bin" / "anywarp")
    assert done.returncode == 1
    assert f"{elsewhere}/bin/../share/anywarp/bench" in done.stderr and "./dev build" in done.stderr


def test_without_the_workers_it_says_where_it_looked(elsewhere):
    (elsewhere / "share" / "anywarp").mkdir(parents=True)
    (elsewhere / "share" / "anywarp" / "bench").symlink_to(
        (BUILD / "share" / "anywarp" / "bench").resolve())
    done = bench("--short", "--out", str(elsewhere), command=elsewhere / "bin" / "anywarp")
    assert done.returncode == 2
    assert f"{elsewhere}/bin/../bench/bench-tcp" in done.stderr


def test_without_our_libraries_it_says_so(elsewhere):
    shutil.rmtree(elsewhere / "lib")
    done = bench("--short", command=elsewhere / "bin" / "anywarp")
    assert done.returncode == 1
    assert "libibverbs.so.1" in done.stderr and "./dev build" in done.stderr


def test_a_run_with_the_real_workers(tmp_path):
    done = subprocess.run([str(BUILD / "bin" / "anywarp"), "bench", "--short", "--out",
                           str(tmp_path), "--only", "latency/loopback/4", "--only",
                           "bandwidth/loopback/65536", "--only", "connect", "--rounds", "1"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    series = [each for point in results["points"] for each in point["series"]]
    assert {each["program"] for each in series} == {"tcp", "verbs", "verbs-host"}
    assert all(each["summary"] and "result" in each["rounds"][0] for each in series)
