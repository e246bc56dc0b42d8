# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pyverbs' own tests, which its package ships as documentation. pyverbs.txt lists which do not pass and
why: one that fails without being there fails this test, and so does one that passes though it is there.
A child of theirs that dies tells it on standard error alone, as "Player active got: ...", which
in the roce persona none may."""

import collections
import gzip
import json
import pathlib
import re
import shutil

import pytest

import scene as scenes

pytestmark = pytest.mark.program("pyverbs: its own tests (python3-pyverbs)")
SHIPPED = pathlib.Path("/usr/share/doc/rdma-core/tests")
PASSED_MIN = {"iwarp": 46, "roce": 128}  # without on-demand MRs, which older kernels have not
LIST = pathlib.Path(__file__).resolve().with_name("pyverbs.txt")


def unpacked(folder):
    """The tests as they were before Debian compressed the long ones."""
    if not SHIPPED.exists():
        pytest.skip("not installed: python3-pyverbs")
    target = folder / "tests"
    target.mkdir()
    for path in SHIPPED.iterdir():
        if path.suffix == ".gz":
            (target / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        else:
            shutil.copy(path, target)
    return target


def listed(persona):
    """The reasons to skip, and the tests that do not pass in a persona."""
    reasons, failing = [], set()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        words = line.split(None, 2)
        if line.startswith("skip "):
            reasons.append(line.split(None, 1)[1])
        elif words and words[0] == persona:
            failing.add(words[1])
    return reasons, failing


@pytest.mark.reports("sink-written", "overlap", "memory-freed", "mr-deregistered", "qp-destroyed", "wakeup-lost",
                     "wrong-state", "sge-too-many", "lkey-unknown", "sge-outside-mr", "remote-access")
def test_pyverbs(scene):
    results = scene.folder / "results.json"
    started = scene.start(["/usr/bin/python3", scenes.HERE / "pyverbs_run.py",
                           unpacked(scene.folder), results],
                          options=["--device-files"])
    assert started.wait_exit(300) == 0
    told = json.loads(results.read_text(encoding="utf-8"))
    count = collections.Counter(outcome for outcome, _ in told.values())
    print(dict(count))
    reasons, failing = listed(scene.persona)
    unlisted = {reason for outcome, reason in told.values() if outcome == "skipped"
                and not any(re.match(pattern, reason) for pattern in reasons)}
    assert not unlisted
    failed = {name for name, (outcome, _) in told.items() if outcome == "failed"}
    assert {name: told[name][1] for name in failed - failing} == {}
    assert not failing - failed, "these pass: take them off the list"
    assert count["passed"] >= PASSED_MIN[scene.persona]
    assert "Traceback" not in started.output()
    assert scene.persona == "iwarp" or "Player" not in started.output()
