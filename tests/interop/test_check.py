# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`anywarp check --device system`: the corpus of tests/check over rdma-core's libraries and siw, in the guest by itself."""

import json
import sys

import conftest
import ends
import pytest

sys.path.append(str(conftest.ROOT / "tests" / "check"))
import corpus  # noqa: E402

pytestmark = pytest.mark.needs(ours=ends.USER, theirs=ends.SIW)

# What siw has not, or does otherwise than a device should.
LACKING = {
    "thread_shared": "no thread domains",
}
NAMES = [name for name in corpus.NAMES if name not in LACKING]
ANYWARP = conftest.BUILD / "bin" / "anywarp"
PROGRAMS = conftest.BUILD / "tests" / "check"
LOOPBACK = "[ -e /sys/class/infiniband/siw_lo ] || rdma link add siw_lo type siw netdev lo"


@pytest.fixture(scope="module")
def guest(theirs_of_session):
    theirs_of_session.shell(LOOPBACK)
    return theirs_of_session


def check(guest, name, side):
    """The exit status, what was said, and the reports."""
    said = guest.shell(f"""cd {guest.folder}
{ANYWARP} check --device system --json reports.json -- {PROGRAMS}/{name} {side} >said 2>&1
echo $?; cat reports.json; echo; cat said""")
    status, rest = said.split("\n", 1)
    reports, end = json.JSONDecoder().raw_decode(rest.lstrip())
    return int(status), rest[end:], reports


@pytest.mark.parametrize("name", NAMES)
def test_a_right_program_is_clean(guest, name):
    status, said, reports = check(guest, name, "right")
    assert (status, reports) == (0, []), said


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_program_is_told(guest, name):
    rules = corpus.expected(name)
    status, said, reports = check(guest, name, "wrong")
    assert status == (0 if set(rules) <= corpus.RISKS else corpus.FOUND), said
    assert set(rules) == {report["rule"] for report in reports}, said
    for report in reports:
        assert not rules[report["rule"]] or corpus.place(report)[1] in rules[report["rule"]], said
