# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The wheel in a venv of a Debian that has no compiler, and the sdist where there is one. The tests depend on those
before them."""

import re

from conftest import PACKAGES, pipe_through, rping_through, version

VENV = "/opt/venv"


def glibc_of(debian):
    return tuple(map(int, re.search(r"GLIBC (\d+)\.(\d+)", debian.run("ldd --version")).groups()))


def test_the_tag_is_no_newer_than_the_release(debian):
    """pip installs a manylinux wheel where the C library is as new as its tag."""
    wheel, = PACKAGES.glob("anywarp-*.whl")
    assert tuple(map(int, re.search(r"-py3-none-manylinux_(\d+)_(\d+)_", wheel.name).groups())) <= glibc_of(debian)


def test_the_command_is_in_the_venv(debian):
    debian.apt("install python3-venv netcat-openbsd")
    debian.run(f"""
        python3 -m venv {VENV}
        {VENV}/bin/pip install --no-index /run/files/anywarp-*.whl""")
    assert debian.run(f"{VENV}/bin/anywarp --version") == f"anywarp {version()}\n"
    assert debian.run(f"{VENV}/bin/python -m anywarp --version") == f"anywarp {version()}\n"


def test_man_finds_the_pages(debian):
    debian.apt("install man-db")
    for page in ("anywarp", "anywarp-check", "anywarp-sockets", "anywarp-stat", "anywarp-capture", "libanywarp-sockets"):
        assert debian.run(f"PATH={VENV}/bin:$PATH man -w {page}").startswith(f"{VENV}/share/man/man"), page


def test_doctor_finds_nothing_wrong(debian):
    told = debian.run(f"{VENV}/bin/anywarp doctor")
    assert "\nok" in f"\n{told}" and "\nfail" not in told, told
    assert re.search("ok +CRC32c +by ", told), told


def test_the_exit_status_is_the_programs(debian):
    assert debian.start("loopback", f"{VENV}/bin/anywarp run -- sh -c 'exit 7'").returncode == 7


def test_rping(debian):
    debian.apt("install rdmacm-utils")
    rping_through(debian, f"{VENV}/bin/anywarp")


def test_sockets(debian):
    pipe_through(debian, f"{VENV}/bin/anywarp")


def test_uninstalled_it_leaves_nothing(debian):
    debian.run(f"{VENV}/bin/pip uninstall -y anywarp")
    assert debian.run(f"find {VENV} -name '*anywarp*'") == ""


def test_the_sdist_builds(debian):
    """With Python's build tools from a folder, as no index is at hand."""
    debian.apt("install build-essential cmake ninja-build pkg-config libibverbs-dev librdmacm-dev")
    debian.run(f"""
        {VENV}/bin/pip install --no-index --find-links /run/files/wheelhouse scikit-build-core
        {VENV}/bin/pip install --no-index --no-build-isolation /run/files/anywarp-*.tar.gz""")
    assert debian.run(f"{VENV}/bin/anywarp --version") == f"anywarp {version()}\n"
    assert "\nfail" not in debian.run(f"{VENV}/bin/anywarp doctor")
