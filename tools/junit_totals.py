# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Adds up the JUnit reports that ctest wrote, one for each preset: a table by suite, the end of
what each failing test printed, and the totals as the last line. A ctest test that is itself a
cmocka or pytest run counts as its cases."""

import collections
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

Totals = collections.namedtuple("Totals", "passed failed skipped seconds")
NOTHING = Totals(0, 0, 0, 0.0)
TAIL_LINES = 60
LIMIT_SECONDS = 300  # the least that ends a test
CMOCKA = re.compile(r"\[ *(PASSED|FAILED|SKIPPED) *\] (\d+) test\(s\)")
# Pytest's lines about a failed assertion; a long report of what the programs printed follows it.
REASON, REASONS_MAX = re.compile(r"E {2,}|[\w/.]+:\d+: \w+"), 40
PYTEST = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.M)


def add(left, right):
    return Totals(*(a + b for a, b in zip(left, right)))


def case_counts(output):
    """The passed, failed and skipped cases that a test's own runner printed."""
    counts = collections.Counter()
    for word, number in CMOCKA.findall(output):
        counts[word.lower()] += int(number)
    for line in PYTEST.findall(output)[-1:]:
        for number, word in re.findall(r"(\d+) (\w+)", line):
            counts["failed" if word in ("error", "errors") else word] += int(number)
    return counts


def totals_of(case):
    seconds = float(case.get("time", 0))
    skipped = case.find("skipped")
    if skipped is not None and "SKIP" in skipped.get("message", ""):
        return Totals(0, 0, 1, seconds)
    counts = case_counts(case.findtext("system-out") or "")
    failed = counts["failed"]
    if case.get("status") != "run":
        return Totals(counts["passed"], max(failed, 1), counts["skipped"], seconds)
    passed = counts["passed"]
    if not passed and not counts["skipped"]:
        passed = 1
    return Totals(passed, 0, counts["skipped"], seconds)


def print_failure(preset, case):
    output = (case.findtext("system-out") or "").rstrip().splitlines()
    reasons = [line for line in output[:-TAIL_LINES] if REASON.match(line)]
    seconds = float(case.get("time", 0))
    print(f"\n---- failed: {case.get('name')} ({preset}), after {seconds:.0f} s")
    if seconds >= LIMIT_SECONDS and not case_counts(case.findtext("system-out") or "")["failed"]:
        print(f"Its limit has ended it. What else the machine does is the likely cause, if that is much: its load is now "
              f"{os.getloadavg()[0]:.0f}, on {os.cpu_count()} processors.")
    print("\n".join(reasons[:REASONS_MAX]))
    print("the end of what it printed:")
    print("\n".join(output[-TAIL_LINES:]))


def preset_of(path):
    return os.path.basename(path).removeprefix("test-").removesuffix(".xml")


def read_report(path):
    """{(preset, suite): Totals} of one report; a missing or broken report is one failure."""
    rows = collections.defaultdict(lambda: NOTHING)
    preset = preset_of(path)
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"---- no usable report from {preset}: {error}")
        return {(preset, "ctest"): Totals(0, 1, 0, 0.0)}
    for case in cases:
        suite = re.split(r"[._]", case.get("name"))[0]
        totals = totals_of(case)
        rows[preset, suite] = add(rows[preset, suite], totals)
        if totals.failed:
            print_failure(preset, case)
    return rows


def print_table(rows):
    print(f"\n{'preset':14}{'suite':10}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for (preset, suite), row in rows.items():
        print(f"{preset:14}{suite:10}{row.passed:8}{row.failed:8}{row.skipped:9}"
              f"{row.seconds:9.1f}")


def main(paths):
    rows = {}
    for path in paths:
        rows.update(read_report(path))
    print_table(rows)
    total = NOTHING
    for row in rows.values():
        total = add(total, row)
    if not total.passed and not total.failed:
        sys.exit("no test ran: no test has that name, label or preset")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {total.failed} failed{skipped}")
    sys.exit(1 if total.failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
