# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each program of this directory, with the argument "wrong" and with "right": by itself it ends well, and `anywarp check` reports
of the wrong one what the comments in it say, and of the right one nothing. ctest sets ANYWARP_BUILD, ANYWARP_PERSONA and
ANYWARP_HOST_PATH; README.md says what the comments mean."""

import json
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
CHECK = BUILD / "lib" / "libanywarp-check.so"
RULES = HERE.parents[1] / "src" / "check" / "report" / "rule.h"

SOURCES = sorted(path for path in HERE.glob("*.c") if path.name != "pair.c")
NAMES = [source.stem for source in SOURCES]
RISKS = {"cq-small"}  # reported, but no reason for another exit status
FOUND = 66  # the exit status where there was a report
SECONDS_MAX = 60 * int(os.environ.get("ANYWARP_SLOWNESS", "1"))

needs_check = pytest.mark.skipif(not CHECK.exists(), reason=f"{CHECK} is not built")
both_sides = pytest.mark.parametrize("side", ["right", "wrong"])
each_program = pytest.mark.parametrize("name", NAMES)


def expected(name):
    """The rules that the program breaks, each with the lines of which one is at fault, or none where any may be."""
    text = (HERE / f"{name}.c").read_text()
    rules = {rule: set() for rule in re.findall(r"/\* ALSO ([a-z-]+) \*/", text)}
    for number, line in enumerate(text.splitlines(), 1):
        for rule in re.findall(r"/\* REPORT ([a-z-]+) \*/", line):
            rules.setdefault(rule, set()).add(number)
    return rules


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False)


def check(name, side, folder):
    """The end of the program under `anywarp check`, and its reports."""
    reports = folder / "reports.json"
    end = run(ANYWARP, "check", "--json", reports, "--", BUILD / "tests" / "check" / name, side)
    return end, json.loads(reports.read_text())


def place(report):
    """The innermost call of the program: its file's name and line. The inline functions of the headers are not its own."""
    frame = next(frame for frame in report["stack"]
                 if frame.get("file") and not re.search(r"/(infiniband|rdma)/|/src/", frame["file"]))
    return pathlib.Path(frame["file"]).name, frame["line"]


def test_every_rule_has_its_program():
    rules = re.findall(r"^\tAW_RULE_(\w+)", RULES.read_text(), re.M)
    assert {rule.lower() for rule in rules} <= set(NAMES)
    for name in NAMES:
        rule = next(rule for rule, lines in expected(name).items() if lines)
        assert name.startswith(rule.replace("-", "_")), f"{name}.c is about {rule}"


@each_program
@both_sides
def test_ends_well_by_itself(name, side):
    end = run(ANYWARP, "run", "--", BUILD / "tests" / "check" / name, side)
    assert end.returncode == 0, end.stderr


@needs_check
@each_program
def test_wrong_is_reported(name, tmp_path):
    rules = expected(name)
    end, reports = check(name, "wrong", tmp_path)
    assert {report["rule"] for report in reports} == set(rules), end.stderr
    for report in reports:
        lines = rules[report["rule"]]
        if lines:
            file, line = place(report)
            assert file == f"{name}.c" and line in lines, end.stderr
    assert end.returncode == (FOUND if set(rules) - RISKS else 0), end.stderr


@needs_check
@each_program
def test_right_is_not(name, tmp_path):
    end, reports = check(name, "right", tmp_path)
    assert reports == [], end.stderr
    assert end.returncode == 0, end.stderr
