# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a user would take instead, measured by its own programs as Debian has them: libfabric's
tcp provider by fi_pingpong (libfabric-bin), UCX's tcp transport by ucx_perftest (ucx-utils)."""

import os
import re
import shutil

import pair
import program
from values import KI, MI

SECONDS_MAX = 30
WARM_UP = 50
PROVIDERS = {"msg": "tcp", "rdm": "tcp;ofi_rxm"}
UCX_TESTS = {"tag_lat": "tag_lat", "put_lat": "ucp_put_lat", "tag_bw": "tag_bw",
             "put_bw": "ucp_put_bw"}
# Over TCP alone: without this two processes of one machine would share memory.
UCX_SETTINGS = {"UCX_TLS": "tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}
# Neither can be told a time, so a count is taken from a guess at what one message costs.
MESSAGE_SECONDS, OCTETS_PER_SECOND = 6e-6, 1.2e9
ITERATIONS_MIN, ITERATIONS_MAX = 100, 50000
SIZE_UNITS = {"": 1, "k": KI, "m": MI, "g": KI * MI}


def iterations(size, seconds, ways):
    count = int(seconds / ways / (MESSAGE_SECONDS + size / OCTETS_PER_SECOND))
    return max(ITERATIONS_MIN, min(count, ITERATIONS_MAX))


class Comparator:
    """What both have in common: a program on PATH, a server whose port is watched."""

    program_name = package = ""

    def missing(self):
        if shutil.which(self.program_name):
            return None
        return f"{self.program_name} is not installed (Debian package {self.package})"

    def pair(self, bed, lines, env=None):
        with program.borrowed_port() as port:
            server, client = (line.format(port=port, address=bed.address).split() for line in lines)
            return pair.run(pair.Pair(bed, server, client, port, None,
                                      {**os.environ, **(env or {})}, SECONDS_MAX))


class Libfabric(Comparator):
    """fi_pingpong knows no test but its ping-pong, and prints its mean alone."""

    program_name, package = "fi_pingpong", "libfabric-bin"

    def run(self, bed, series, seconds):
        size, endpoint = series.keys["size"], series.keys["endpoint"]
        line = (f"fi_pingpong -p {PROVIDERS[endpoint]} -e {endpoint} -S {size} "
                f"-I {iterations(size, seconds, 2)}")
        return parse_pingpong(self.pair(bed, (line + " -B {port}", line + " -P {port} {address}")),
                              size)


def parse_pingpong(output, size):
    """Its table has one row: bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec."""
    rows = [line.split() for line in output.splitlines() if re.match(r" *\d", line)]
    if len(rows) != 1 or len(rows[0]) != 8 or parse_size(rows[0][0]) != size:
        raise pair.Failure(f"fi_pingpong printed no row for {size} octets: {output[-200:]!r}")
    return {"transport": "libfabric", "test": "latency", "size": size,
            "usec": {"mean": float(rows[0][6])}}


def parse_size(text):
    number, unit = re.fullmatch(r"([\d.]+)([kmg]?)", text.lower()).groups()
    return int(float(number) * SIZE_UNITS[unit])


class Ucx(Comparator):
    """ucx_perftest: the server learns from the client what to do."""

    program_name, package = "ucx_perftest", "ucx-utils"

    def run(self, bed, series, seconds):
        size, test = series.keys["size"], series.test
        count = iterations(size, seconds, 1 if test.endswith("bw") else 2)
        line = "ucx_perftest -p {port}"
        output = self.pair(bed, (line, f"{line} -t {UCX_TESTS[test]} -s {size} -n {count} "
                                       f"-w {WARM_UP} -v {{address}}"),
                           {**UCX_SETTINGS, **({"UCX_NET_DEVICES": "lo"} if bed.name == "loopback"
                                               else {})})
        return parse_perftest(output, test, size)


def parse_perftest(output, test, size):
    """The CSV's last row: iterations, 50.0_percentile_lat, avg_lat, overall_lat, avg_bw,
    overall_bw, avg_mr, overall_mr. Its MB are 2^20 octets."""
    rows = [line.split(",") for line in output.splitlines() if re.match(r" *\d+,", line)]
    if not rows or len(rows[-1]) != 8:
        raise pair.Failure(f"ucx_perftest printed no result: {output[-200:]!r}")
    row = [float(field) for field in rows[-1]]
    result = {"transport": "ucx", "test": test, "size": size, "iterations": int(row[0])}
    if test.endswith("_lat"):
        return {**result, "usec": {"median": row[1], "mean": row[3]}}
    return {**result, "octets_per_second": row[7] * size, "messages_per_second": row[7]}
