# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs each test in the personas it names, and leaves a row for each in build/*/ecosystem for table.py:
the marks `program(NAME)` and `personas(NAME, ...)` say where it belongs. ctest sets ANYWARP_BUILD."""

import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools" / "lib"), str(ROOT / "tests" / "programs")]
sys.dont_write_bytecode = True

import failures  # noqa: E402
import scene as scenes  # noqa: E402

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --ecosystem")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
OUTCOMES = []


def pytest_configure(config):
    config.addinivalue_line("markers", "program(name): the table's row")
    config.addinivalue_line("markers", "personas(name, ...): where it runs; both if not said")


def pytest_addoption(parser):
    parser.addoption("--persona", choices=scenes.PERSONAS, help="only this one")


def pytest_generate_tests(metafunc):
    if "persona" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("personas")
    wanted = metafunc.config.getoption("--persona")
    named = mark.args if mark else scenes.PERSONAS
    metafunc.parametrize("persona", [each for each in named if wanted in (None, each)])


@pytest.fixture
def scene(persona, tmp_path, request):
    if "ANYWARP_TEST_NET" not in os.environ:
        pytest.skip("no network namespace is allowed here (unshare --net)")
    made = scenes.Scene(persona, BUILD, tmp_path)
    request.node.told = made.report
    yield made
    made.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what each of its programs printed; every test leaves its outcome."""
    outcome = yield
    report = outcome.get_result()
    failures.show(item, report)
    persona = getattr(item, "callspec", None) and item.callspec.params.get("persona")
    if persona in scenes.PERSONAS and (report.when == "call" or not report.passed):
        OUTCOMES.append(row(item, persona, report))


def row(item, persona, report):
    mark = item.get_closest_marker("program")
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    return {"test": item.name, "program": mark.args[0] if mark else item.path.stem,
            "persona": persona, "outcome": report.outcome,
            "reason": reason.removeprefix("Skipped: "), "fault": getattr(report, "wasxfail", "")}


def pytest_sessionfinish(session):
    if OUTCOMES and not session.config.getoption("collectonly"):
        folder = BUILD / "ecosystem"
        folder.mkdir(exist_ok=True)
        name = pathlib.Path(session.config.args[0].split("::")[0]).stem
        (folder / f"{name}.json").write_text(json.dumps(OUTCOMES, indent=1), encoding="utf-8")
