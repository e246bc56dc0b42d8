# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Google's rdma-unit-test: its tests of single verbs (unit/). No package has it: ANYWARP_RDMA_UNIT_TEST names the program, built with
rdma_unit_test.h (docs/programs.md). rdma_unit_test.txt lists what does not pass and why: a test that fails without
being there fails this one, and so does one that passes though it is there."""

import collections
import json
import os
import pathlib

import pytest

import scene as scenes

pytestmark = [pytest.mark.program("rdma-unit-test"), pytest.mark.personas("roce"), pytest.mark.one_host]
PROGRAM = os.environ.get("ANYWARP_RDMA_UNIT_TEST")
LIST = pathlib.Path(__file__).resolve().with_name("rdma_unit_test.txt")
PASSED_MIN = 470
SECONDS_MAX = 420
# A QP whose peer is not there fails by InfiniBand's formula, 6.4 s where these tests ask for a second and five retries.
WAITS = 5


def listed(kind):
    """The tests that the list has of a kind."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line.split(None, 1)[1] for line in lines if line.startswith(f"{kind} ")]


def outcomes(scene, name, chosen, waits=1):
    """{test: outcome} of those chosen by a filter of googletest's: the first failure, "skipped" or "passed"."""
    results = scene.folder / f"{name}.json"
    started = scene.start([pathlib.Path(PROGRAM).resolve(), f"--gtest_filter={chosen}", f"--gtest_output=json:{results}",
                           "--verbs_mtu=1024", f"--completion_wait_multiplier={waits}"])
    started.wait_exit(SECONDS_MAX)
    assert results.exists(), "it has not come to its end"
    told = json.loads(results.read_text(encoding="utf-8"))
    return {f"{suite['name']}.{test['name']}": outcome(test) for suite in told["testsuites"] for test in suite["testsuite"]}


def outcome(test):
    if "failures" in test:
        return test["failures"][0]["failure"]
    return "skipped" if test["result"] == "SKIPPED" else "passed"


@pytest.fixture(autouse=True)
def program():
    if not PROGRAM:
        pytest.skip("ANYWARP_RDMA_UNIT_TEST names no program")
    if scenes.CHECKED:
        pytest.skip("its tests break the rules on purpose")


def test_rdma_unit_test(scene):
    apart = listed("ends") + listed("fails")
    told = outcomes(scene, "passing", "-" + ":".join(apart), WAITS)
    count = collections.Counter(came for came in told.values() if came in ("passed", "skipped"))
    print(dict(count), len(apart), "listed")
    assert {test: came for test, came in told.items() if came not in count} == {}
    assert {test for test, came in told.items() if came == "skipped"} <= set(listed("skips"))
    assert count["passed"] >= PASSED_MIN


def test_rdma_unit_test_listed(scene):
    """What would end the program, or wait for ever, is not run."""
    chosen = listed("fails")
    told = outcomes(scene, "failing", ":".join(chosen))
    assert sorted(told) == sorted(chosen), "these are no tests of it"
    assert not [test for test, came in told.items() if came in ("passed", "skipped")], "these pass: take them off the list"
