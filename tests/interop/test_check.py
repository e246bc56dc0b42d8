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

# What siw has not, or what a device should do and siw does not.
STATELESS = "siw's ibv_query_qp does not tell the state"
ROOMY = "siw's SQ takes more than the max_send_wr that it reports, so that no post fails"
LACKING = {
    "destroyed_in_use": "a flushed receive wakes the thread before the channel is destroyed",
    "posted_again": ROOMY,
    "qp_destroyed": STATELESS,
    "qp_destroyed_answered": STATELESS,
    "registered_freed": STATELESS,
    "remote_access": "siw's completion of a refused Read does not tell the cause",
    "source_changed_extended": "no ibv_create_cq_ex",
    "sq_unpolled": ROOMY,
    "status_ignored": STATELESS,
    "thread_shared": "no thread domains",
    "wrong_state": STATELESS,
}
NAMES = [name for name in corpus.NAMES if name not in LACKING]
ANYWARP = conftest.BUILD / "bin" / "anywarp"
PROGRAMS = conftest.BUILD / "tests" / "check"



def check(guest, name, side):
    """The exit status, what was said, and the reports."""
    said = guest.shell(f"""cd {guest.folder}
TMPDIR=. PAIR_ADDRESS={guest.address} {ANYWARP} check --device system {' '.join(corpus.options(name))} --json reports.json -- {PROGRAMS}/{name} {side} >said 2>&1
echo $?; cat reports.json; echo; cat said""")
    status, rest = said.split("\n", 1)
    reports, end = json.JSONDecoder().raw_decode(rest.lstrip())
    return int(status), rest[end:], reports


@pytest.mark.parametrize("name", NAMES)
def test_a_right_program_is_clean(theirs, name):
    status, said, reports = check(theirs, name, "right")
    assert (status, reports) == (0, []), said


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_program_is_told(theirs, name):
    rules = corpus.expected(name)
    status, said, reports = check(theirs, name, "wrong")
    assert status == (0 if set(rules) <= corpus.RISKS else corpus.FOUND), said
    assert set(rules) == {report["rule"] for report in reports}, said
    for report in reports:
        assert not rules[report["rule"]] or corpus.place(report)[1] in rules[report["rule"]], said
