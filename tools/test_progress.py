# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""test_progress.py TESTS.json [SECONDS]: reads what ctest prints as its tests end; TESTS.json names them (ctest --show-only=json-v1). Prints
each test on a terminal, and of few tests; of many the failures alone elsewhere; and every half minute, or so many seconds, how far the run is."""

import json
import os
import re
import signal
import sys
import time

ENDED = re.compile(r" *\d+/\d+ Test +#\d+: (\S+) ")
FAILED, SKIPPED = "***", "***Skipped"
FEW = 20
TELL_SECONDS = 30
COST_MIN = 2  # seconds that a test takes of which tests/ does not say what it costs


def cost_of(test):
    """In seconds, about. What needs several processors has a hundred more, so that it comes first."""
    known = {each["name"]: each["value"] for each in test.get("properties", ())}
    cost = known.get("COST", 0) - (100 if known.get("PROCESSORS", 1) > 1 else 0)
    return max(cost, COST_MIN)


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Progress:
    def __init__(self, costs):
        self.costs = costs
        self.began = time.monotonic()
        self.ended, self.failed, self.done = 0, 0, 0

    def take(self, line):
        """True when the line is of a test that has failed."""
        match = ENDED.match(line)
        if not match:
            return False
        failed = FAILED in line and SKIPPED not in line
        self.ended += 1
        self.failed += failed
        self.done += self.costs.get(match[1], COST_MIN)
        return failed

    def text(self):
        gone, left = time.monotonic() - self.began, sum(self.costs.values()) - self.done
        guess = f", about {minutes(gone * left / self.done)} left" if self.done and left > 0 else ""
        return f"   {self.ended} of {len(self.costs)} tests, {self.failed} failed, {minutes(gone)} gone{guess}\n"


def say(text):
    """Whole, also from the handler of a signal that comes in the midst of it."""
    os.write(sys.stdout.fileno(), text.encode())


def main(path, seconds=TELL_SECONDS):
    with open(path, encoding="utf-8") as file:
        progress = Progress({each["name"]: cost_of(each) for each in json.load(file)["tests"]})
    all_shown = sys.stdout.isatty() or len(progress.costs) <= FEW
    signal.signal(signal.SIGALRM, lambda *_: say(progress.text()))
    signal.setitimer(signal.ITIMER_REAL, float(seconds), float(seconds))
    for line in sys.stdin:
        if progress.take(line) or all_shown and ENDED.match(line):
            say(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
