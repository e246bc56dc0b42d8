# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is built here: without a warning by the other compiler, too (./dev has built with gcc), and as users do."""

import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT

JOBS = 2


def configure(folder, *options):
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options], check=True)


@pytest.mark.skipif(not shutil.which("clang"), reason="no clang")
def test_clang_builds_without_a_warning():
    """What was built before is not built again."""
    folder = BUILD.with_name("clang")
    configure(folder, "-DCMAKE_C_COMPILER=clang", "-DAW_WERROR=ON")
    built = subprocess.run(["cmake", "--build", folder, "-j", str(JOBS)], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout[-20000:] + built.stderr


def test_a_users_build_takes_no_warning_for_an_error(tmp_path):
    """Newer compilers and headers have new ones."""
    configure(tmp_path, "-DBUILD_TESTING=OFF")
    commands = (tmp_path / "compile_commands.json").read_text()
    assert "-Wextra" in commands and "-Werror" not in commands
