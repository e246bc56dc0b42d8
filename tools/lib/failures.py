# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The output of programs that a failed test shows beside its own words. A conftest.py imports the
hook, and gives a test's node the function `told`, which tells what its programs printed."""

import pytest


def show(item, report):
    told = getattr(item, "told", None)
    if report.when == "call" and report.failed and told:
        report.sections.append(("programs", told()))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    show(item, outcome.get_result())
