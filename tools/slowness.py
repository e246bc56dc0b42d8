# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""slowness.py JOBS: prints, as a whole number, how many times as long as on the machine that the tests' limits are made for so
many jobs take at once that are begun here now: what other programs take of the processors counts, as well as slow processors."""

import subprocess
import sys
import time

JOB = [sys.executable, "-I", "-S", "-c", "for each in range(10_000_000): pass"]
REFERENCE_SECONDS = 0.3  # of one job, on one processor of 2.5 GHz or so that has nothing else to do
REFERENCE_JOBS = 3  # a processor, as in ./dev test
SLOWNESS_MAX = 10


def measure(jobs):
    began = time.monotonic()
    running = [subprocess.Popen(JOB) for _ in range(jobs)]
    for each in running:
        each.wait()
    return time.monotonic() - began


def times(seconds):
    return min(max(1, round(seconds / REFERENCE_SECONDS / REFERENCE_JOBS)), SLOWNESS_MAX)


if __name__ == "__main__":
    print(times(measure(int(sys.argv[1]))))
