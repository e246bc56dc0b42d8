# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The pytest plugin in python/: tests that use its fixture are written to a file, and pytest is run on them."""

import os
import pathlib
import re
import subprocess

import beds
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
PYTEST = ("/usr/bin/python3", "-m", "pytest", "-p", "anywarp.pytest_plugin", "-p", "no:cacheprovider", "-rs", "-q", "-s")


def outcome(folder, text, path=None, prefix=()):
    """What pytest prints of these tests."""
    (folder / "test_it.py").write_text(f"import subprocess\nimport pytest\n\n{text}")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
           "PATH": path if path is not None else f"{BUILD / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run([*prefix, *PYTEST, "test_it.py"], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=200)
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def namespaces():
    try:
        with beds.VethBed(1500):
            pass
    except beds.NotAllowed as error:
        pytest.skip(str(error))


def test_two_programs_meet(tmp_path):
    told = outcome(tmp_path, """
def test(anywarp):
    server = anywarp.server.start("rping", "-s", "-a", anywarp.server.address, "-C", "5", port=7174)
    done = anywarp.client.run("rping", "-c", "-a", anywarp.server.address, "-C", "5", "-v")
    assert "rdma-ping-4:" in done.stdout and server.wait(20) == 0
    assert anywarp.device in anywarp.client.run("ibv_devices").stdout
""")
    assert "1 passed" in told, told


def test_the_marker_says_the_mtu_and_the_persona(tmp_path):
    told = outcome(tmp_path, """
@pytest.mark.anywarp(mtu=9000, persona="iwarp")
def test(anywarp):
    assert "mtu 9000" in anywarp.server.run("ip", "link", "show", "veth0").stdout
    assert "iWARP" in anywarp.server.run("ibv_devinfo").stdout
    assert anywarp.client.run("ls", "/sys/class/infiniband").stdout == "anywarp0\\n"
""")
    assert "1 passed" in told, told


def test_what_is_lost_is_lost(tmp_path):
    told = outcome(tmp_path, """
@pytest.mark.anywarp(loss="100%", seconds=30)
def test(anywarp):
    anywarp.server.start("rping", "-s", "-a", anywarp.server.address, port=7174)
    assert anywarp.client.run("timeout", "2", "rping", "-c", "-a", anywarp.server.address, "-C", "1", check=False).returncode == 124
""")
    assert "1 passed" in told or ("1 skipped" in told and "netem" in told), told


def test_a_program_that_fails_fails_the_test(tmp_path):
    told = outcome(tmp_path, """
@pytest.mark.anywarp(faults="ibv_open_device:nth=1")
def test(anywarp):
    anywarp.server.run("ibv_devinfo")


def test_early(anywarp):
    anywarp.server.start("true", port=7174)
""")
    assert "2 failed" in told and "Failed to open device" in told and "before it listened on port 7174" in told, told


def test_nothing_is_left_of_a_test_that_fails(tmp_path):
    told = outcome(tmp_path, """
def test(anywarp):
    print("left:", anywarp.server.start("sleep", "1000").pid)
    assert False
""")
    pid, = re.findall(r"left: (\d+)", told)
    assert "1 failed" in told and not os.path.exists(f"/proc/{pid}"), told


def test_without_namespaces_it_is_skipped_with_a_reason(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "unshare").write_text("#!/bin/sh\necho unshare: not here >&2\nexit 1\n")
    (folder / "unshare").chmod(0o755)
    told = outcome(tmp_path, "def test(anywarp):\n    pass\n", path=f"{folder}:{BUILD / 'bin'}:{os.environ['PATH']}")
    assert "1 skipped" in told and re.search("unshare: not here; .*sudo pytest", told), told


def test_without_the_command_it_is_skipped_with_a_reason(tmp_path):
    told = outcome(tmp_path, "def test(anywarp):\n    pass\n", path="/usr/bin:/bin")
    assert "1 skipped" in told and "no command 'anywarp'" in told, told


def test_a_wrong_marker_is_an_error(tmp_path):
    told = outcome(tmp_path, "@pytest.mark.anywarp(mut=9000)\ndef test(anywarp):\n    pass\n")
    assert "has no mut" in told and "1 error" in told, told
