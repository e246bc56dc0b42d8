# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Unmodified programs in every mode of `anywarp sockets`. ctest sets ANYWARP_BUILD."""

import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tools/lib", "tests/system")]
sys.dont_write_bytecode = True

import scene as scenes  # noqa: E402
import tap  # noqa: E402
from failures import pytest_runtest_makereport  # noqa: E402, F401

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --system")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()


@pytest.fixture(scope="session")
def install():
    folder = scenes.new_folder()
    made = scenes.Install(BUILD, folder)
    yield made
    made.wait_gone()
    shutil.rmtree(folder, ignore_errors=True)


def pytest_addoption(parser):
    parser.addoption("--mode", action="append", choices=[mode.name for mode in (*scenes.MODES, scenes.TLS, scenes.TLS_PLAIN)],
                     help="only this mode, or these")


def pytest_generate_tests(metafunc):
    """Every test that has a scene runs in every mode, or says itself in which."""
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "scene" in metafunc.fixturenames and "mode" not in marked:
        wanted = metafunc.config.getoption("--mode")
        modes = [mode for mode in (*scenes.MODES, scenes.TLS, scenes.TLS_PLAIN) if mode.name in (wanted or [each.name for each in scenes.MODES])]
        metafunc.parametrize("mode", modes, ids=lambda mode: mode.name)


@pytest.fixture
def scene(mode, install, request):
    try:
        made = scenes.Scene(mode, install)
    except tap.NotAllowed as error:
        pytest.skip(str(error))
    request.node.told = made.report
    yield made
    made.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test that did well is judged before it counts as passed."""
    outcome = yield
    made = pyfuncitem.funcargs.get("scene")
    if made and outcome.excinfo is None:
        made.judge_all()
