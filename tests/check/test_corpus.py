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
from corpus import FOUND, HERE, NAMES, RISKS, expected, options, place

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = BUILD / "bin" / "anywarp"
RULES = HERE.parents[1] / "src" / "check" / "report" / "rule.h"

# Of --vary: a list with commas between; without one the device does not vary.
SEEDS = [seed for seed in os.environ.get("ANYWARP_CHECK_SEEDS", "").split(",") if seed] or [None]
SECONDS_MAX = 60 * int(os.environ.get("ANYWARP_SLOWNESS", "1"))

both_sides = pytest.mark.parametrize("side", ["right", "wrong"])
each_seed = pytest.mark.parametrize("seed", SEEDS)
each_program = pytest.mark.parametrize("name", NAMES)


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False)


def check(name, side, seed, folder):
    """The end of the program under `anywarp check`, and its reports."""
    reports = folder / "reports.json"
    vary = ["--vary", seed] if seed else []
    end = run(ANYWARP, "check", *vary, *options(name), "--json", reports, "--", BUILD / "tests" / "check" / name, side)
    return end, json.loads(reports.read_text())


def test_every_rule_has_its_program():
    rules = re.findall(r"^\tAW_RULE_(\w+)", RULES.read_text(), re.M)
    assert {rule.lower() for rule in rules} <= set(NAMES)
    assert options("passive_first") == ["--like", "irdma"]
    for name in NAMES:
        rule = next(rule for rule, lines in expected(name).items() if lines)
        assert name.startswith(rule.replace("-", "_")), f"{name}.c is about {rule}"


@each_program
@both_sides
def test_ends_well_by_itself(name, side):
    end = run(ANYWARP, "run", "--", BUILD / "tests" / "check" / name, side)
    assert end.returncode == 0, end.stderr


@each_program
@each_seed
def test_wrong_is_reported(name, seed, tmp_path):
    rules = expected(name)
    end, reports = check(name, "wrong", seed, tmp_path)
    assert {report["rule"] for report in reports} == set(rules), end.stderr
    for report in reports:
        lines = rules[report["rule"]]
        if lines:
            file, line = place(report)
            assert file == f"{name}.c" and line in lines, end.stderr
    assert end.returncode == (FOUND if set(rules) - RISKS else 0), end.stderr


@each_program
@each_seed
def test_right_is_not(name, seed, tmp_path):
    end, reports = check(name, "right", seed, tmp_path)
    assert reports == [], end.stderr
    assert end.returncode == 0, end.stderr


def test_explain_says_why_and_reports_nothing():
    end = run(ANYWARP, "check", "--explain", "--", BUILD / "tests" / "check" / "sge_too_many", "wrong")
    assert end.returncode == 0, end.stderr
    assert re.fullmatch(r"anywarp check: ibv_post_send: num_sge 3, but QP 0x[0-9a-f]+ was created with max_send_sge 2\n", end.stderr)


def test_explain_tells_each_refusal():
    end = run(ANYWARP, "check", "--explain", "--", BUILD / "tests" / "check" / "refused", "right")
    assert end.returncode == 0, end.stderr
    handle = {"iwarp": "EOPNOTSUPP: the device has no address handles, which are for UD QPs: iWARP has neither",
              "roce": "grh.dgid is zero: it has to be the peer's GID, which the two programs exchange"}[os.environ["ANYWARP_PERSONA"]]
    told = [line for line in end.stderr.splitlines() if line.startswith("anywarp check: ")]
    assert [re.sub(r"0x[0-9a-f]+", "N", line.removeprefix("anywarp check: ")) for line in told] == [
        "ibv_dealloc_pd: still held by 2 QPs and 2 MRs",
        "ibv_destroy_cq: still held by 1 QP",
        "ibv_destroy_comp_channel: still held by 1 CQ",
        "ibv_bind_mw: the MR of lkey N was registered with access N, without IBV_ACCESS_MW_BIND",
        f"ibv_create_ah: {handle}",
        "rdma_create_qp: qp_type is UD, but the id's port space has RC QPs"]
