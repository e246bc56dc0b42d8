# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ci/setup with the build in the place of what it installs: what it tells later steps. tests/package/test_ci.py has it install."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()


def setup(folder, *words, **env):
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), **env}
    return subprocess.run([ROOT / "ci/setup", *words], env=given, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def place(tmp_path):
    """The directory for --dir, in which the build is installed."""
    folder = tmp_path / "place"
    prefix, = [line.partition("=")[2] for line in setup(tmp_path, "key", "--dir", str(folder)).stdout.splitlines() if line.startswith("prefix=")]
    pathlib.Path(prefix).mkdir()
    (pathlib.Path(prefix) / "bin").symlink_to(BUILD / "bin")
    return folder


def exported(place, *words):
    """What a shell has that evaluates it, beside what it had."""
    told = setup(place.parent, "export", "--dir", str(place), *words)
    assert told.returncode == 0, told.stderr
    done = subprocess.run(["env", "-i", "PATH=/usr/bin:/bin", "sh", "-euc", told.stdout + "\nexec env -0"],
                          capture_output=True, text=True, check=True)
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)


def test_the_key_is_that_of_the_sources(tmp_path):
    first, again = (setup(tmp_path, "key").stdout for _ in range(2))
    assert first == again and f"prefix={tmp_path}/.cache/anywarp/anywarp-" in first, first


def test_later_steps_have_the_device(place):
    found = exported(place)
    assert found["ANYWARP_PERSONA"] == "roce" and found["LD_LIBRARY_PATH"] == str(BUILD / "lib")
    assert found["LD_PRELOAD"] == str(BUILD / "lib/libanywarp-paths.so") and pathlib.Path(found["ANYWARP_PATHS"]).is_dir()
    assert found["PATH"].startswith(f"{place}/anywarp-") and "UCX_TLS" not in found


def test_a_check_and_faults(place):
    found = exported(place, "--check", "halt", "--faults", "ibv_reg_mr:nth=3", "--seed", "7", "--persona", "iwarp")
    assert "halt=on" in found["ANYWARP_CHECK"] and found["ANYWARP_FAULTS"] == "ibv_reg_mr:nth=3" and found["ANYWARP_FAULTS_SEED"] == "7"
    assert "libanywarp-check.so" in found["LD_PRELOAD"] and "ANYWARP_CHECK_REPORTS" not in found


def test_nothing_is_preloaded(place):
    found = exported(place, "--device-files", "false")
    assert "LD_PRELOAD" not in found and found["ANYWARP_PERSONA"] == "roce"


def test_mpi(place):
    found = exported(place, "--mpi", "true")
    assert found["UCX_TLS"] == "rc_verbs,ud_verbs,self" and found["OMPI_MCA_pml"] == "ucx"
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in found) == (os.geteuid() == 0)


def test_the_files_of_github(place, tmp_path):
    env, path = tmp_path / "env", tmp_path / "path"
    told = setup(tmp_path, "export", "--dir", str(place), GITHUB_ENV=str(env), GITHUB_PATH=str(path))
    assert told.returncode == 0 and told.stdout == ""
    assert f"LD_LIBRARY_PATH={BUILD}/lib\n" in env.read_text() and path.read_text().startswith(f"{place}/anywarp-")


@pytest.mark.parametrize("words, said", [
    (("--check", "hlat"), "it must be off, explain, report or halt"),
    (("--persona", "rcoe"), "it must be iwarp or roce"),
    (("--mpi",), "--mpi needs a value"),
    (("--mpi", "yes"), "it must be true or false"),
    (("--mpi", "true", "--persona", "iwarp"), "--mpi needs --persona roce"),
    (("--check", "halt", "--device-files", "false"), "preload a library"),
    (("--faults", "nosuch:nth=1"), "no place 'nosuch'"),
    (("--nosuch", "1"), "unknown argument '--nosuch'"),
])
def test_what_is_wrong_is_named(place, words, said):
    told = setup(place.parent, "export", "--dir", str(place), *words)
    assert told.returncode == 1 and said in told.stderr, told.stdout + told.stderr


@pytest.mark.parametrize("name", ["a:b", "a;b", "a$b", "a b"])
def test_a_directory_that_the_loader_cannot_name(tmp_path, name):
    told = setup(tmp_path, "key", "--dir", str(tmp_path / name))
    assert told.returncode == 1 and "cannot name" in told.stderr, told.stderr


def test_a_shell_fails_where_it_fails(tmp_path):
    """eval of nothing would succeed."""
    told = setup(tmp_path, "--archive", "/nosuch")
    assert told.returncode == 1 and told.stdout == "false\n" and "there is no /nosuch" in told.stderr
