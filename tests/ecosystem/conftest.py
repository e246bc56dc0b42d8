# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs each test in the personas it names, and leaves a row for each in build/*/ecosystem for table.py:
the marks `program(NAME)` and `personas(NAME, ...)` say where it belongs. ctest sets ANYWARP_BUILD, and ANYWARP_TEST_HOSTS=2
for the clients of the tests to be on a second host, ANYWARP_TEST_CHECKED=1 for all programs to run under `anywarp check`,
ANYWARP_TEST_TLS=1 for them to require mutual TLS."""

import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("tools/lib", "tests/programs", "tests/system")]
sys.dont_write_bytecode = True

import beds  # noqa: E402
import certificates  # noqa: E402
import failures  # noqa: E402
import hosts  # noqa: E402
import scene as scenes  # noqa: E402

if "ANYWARP_BUILD" not in os.environ:
    sys.exit("set ANYWARP_BUILD to the build directory, or use ./dev test --ecosystem")
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
TWO_HOSTS = os.environ.get("ANYWARP_TEST_HOSTS") == "2"
OUTCOMES = []


def pytest_configure(config):
    config.addinivalue_line("markers", "program(name): the table's row")
    config.addinivalue_line("markers", "personas(name, ...): where it runs; both if not said")
    config.addinivalue_line("markers", "reports(rule, ...): what `anywarp check` rightly says of its programs, besides risks")
    config.addinivalue_line("markers", "datagrams: has some, which TLS refuses")
    config.addinivalue_line("markers", "one_host: nothing in it has two ends")
    config.addinivalue_line("markers", "fails_between_hosts(reason): it passes within one host alone")


def pytest_addoption(parser):
    parser.addoption("--persona", choices=scenes.PERSONAS, help="only this one")


def pytest_generate_tests(metafunc):
    if "persona" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("personas")
    wanted = metafunc.config.getoption("--persona")
    named = mark.args if mark else scenes.PERSONAS
    metafunc.parametrize("persona", [each for each in named if wanted in (None, each)])


def leave_out(config, items, mark):
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(mark)])
    items[:] = [item for item in items if not item.get_closest_marker(mark)]


def pytest_collection_modifyitems(config, items):
    if scenes.TLS:
        leave_out(config, items, "datagrams")
    if not TWO_HOSTS:
        return
    leave_out(config, items, "one_host")
    for item in items:
        mark = item.get_closest_marker("fails_between_hosts")
        if mark:
            item.add_marker(pytest.mark.xfail(strict=True, reason=mark.args[0]))


@pytest.fixture(scope="session")
def far():
    """The second host, where there is one."""
    if "ANYWARP_TEST_NET" not in os.environ:
        pytest.skip("no network namespace is allowed here (unshare --net)")
    if not TWO_HOSTS:
        yield None
        return
    try:
        made = hosts.FarHost()
    except beds.NotAllowed as error:
        pytest.skip(f"no second host: {error}")
    yield made
    made.close()


def judge_reports(request, made):
    """What `anywarp check` reports of a program is looked at by hand, told in docs/check.md, and named by the mark."""
    told = made.reports_read()
    with open(BUILD / "ecosystem" / "reports.jsonl", "a", encoding="utf-8") as file:
        for report in told:
            file.write(json.dumps({"test": request.node.nodeid, **report}) + "\n")
    mark = request.node.get_closest_marker("reports")
    new = [report for report in told if report["level"] == "error" and report["rule"] not in (mark.args if mark else ())]
    assert not new, json.dumps(new, indent=1)


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    """What `anywarp run` is told: one certificate for all hosts, by a name that it has."""
    if not scenes.TLS:
        return []
    files = certificates.Authority(tmp_path_factory.mktemp("authorities") / "ca").issue("cluster")
    return ["--tls", "require", "--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca),
            "--tls-name", "cluster", "--log", "info"]


@pytest.fixture
def scene(persona, tmp_path, request, far, tls):
    made = scenes.Scene(persona, BUILD, tmp_path, far, tls)
    request.node.told = made.report
    yield made
    made.close()
    if scenes.CHECKED:
        judge_reports(request, made)


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
            "column": "two hosts" if TWO_HOSTS else persona, "outcome": report.outcome,
            "reason": reason.removeprefix("Skipped: "), "fault": getattr(report, "wasxfail", "")}


def pytest_sessionfinish(session):
    if OUTCOMES and not scenes.CHECKED and not scenes.TLS and not session.config.getoption("collectonly"):
        folder = BUILD / "ecosystem"
        folder.mkdir(exist_ok=True)
        name = pathlib.Path(session.config.args[0].split("::")[0]).stem + "_two_hosts" * TWO_HOSTS
        (folder / f"{name}.json").write_text(json.dumps(OUTCOMES, indent=1), encoding="utf-8")
