# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest's programs as Debian has them (package perftest), with anywarp's libraries: connections by rdma_cm (-R), all else as it
comes. Server and client are the same program."""

import os
import re

import others
import pair
from values import MI

PROGRAMS = tuple(f"ib_{op}_{kind}" for op in ("write", "send", "read") for kind in ("bw", "lat"))
# No time can be told to a client that counts its messages; so fast it may be.
OCTETS_PER_SECOND, ROUND_TRIP_SECONDS = 3e9, 100e-6
ITERATIONS_MIN = 100
# The columns behind #bytes and #iterations: peak, average and rate; and least, most, typical (the median), mean and so on.
BANDWIDTH_COLUMNS, AVERAGE = 5, 3
LATENCY_COLUMNS, TYPICAL, MEAN, PERCENTILE_99 = 9, 4, 5, 7


def iterations(test, size, seconds):
    each = size / OCTETS_PER_SECOND if test.endswith("bw") else ROUND_TRIP_SECONDS
    return max(ITERATIONS_MIN, int(seconds / each))


class Perftest(others.Comparator):
    """A series' test is the program's name."""

    package = "perftest"

    def __init__(self, libraries, settings):
        self.env = {**settings, "LD_LIBRARY_PATH": ":".join(filter(None, (libraries, os.environ.get("LD_LIBRARY_PATH"))))}

    def missing(self):
        for self.program_name in PROGRAMS:
            why = super().missing()
            if why:
                return why
        return None

    def run(self, bed, series, seconds):
        size, test = series.keys["size"], series.test
        line = f"{test} -R -F -p {{port}} -s {size} -n {iterations(test, size, seconds)}"
        return parse(self.pair(bed, (line, f"{line} {{address}}"), self.env), test, size)


def parse(output, test, size):
    """The row behind the one that begins with #bytes. MB are 2^20 bytes there; a Read's time is that of the way there and
    back, the others' half of that."""
    rows = [line.split() for line in output.splitlines() if re.match(rf" {size} +\d+ ", line)]
    columns = BANDWIDTH_COLUMNS if test.endswith("bw") else LATENCY_COLUMNS
    if len(rows) != 1 or len(rows[0]) != columns:
        raise pair.Failure(f"{test} printed no row for {size} bytes: {output[-200:]!r}")
    row = [float(field) for field in rows[0]]
    result = {"transport": "perftest", "test": test, "size": size, "iterations": int(row[1])}
    if test.endswith("bw"):
        return {**result, "octets_per_second": row[AVERAGE] * MI}
    ways = 2 if test == "ib_read_lat" else 1
    return {**result, "usec": {name: row[column] / ways for name, column in
                               (("median", TYPICAL), ("mean", MEAN), ("p99", PERCENTILE_99))}}
