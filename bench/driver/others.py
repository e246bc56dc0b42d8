# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a user would take instead, measured by its own programs as Debian has them: libfabric's
tcp and shm providers by fi_pingpong (libfabric-bin), UCX's tcp and shared-memory transports by ucx_perftest (ucx-utils)."""

import collections
import os
import re
import shutil
import subprocess

import pair
import program
from values import KI, MI

SECONDS_MAX = 30
WARM_UP = 50
UCX_TESTS = {"tag_lat": "tag_lat", "put_lat": "ucp_put_lat", "tag_bw": "tag_bw",
             "put_bw": "ucp_put_bw"}
# Neither can be told a time, so a count is taken from a guess at what one message costs.
Guess = collections.namedtuple("Guess", "message_seconds octets_per_second iterations_max")
BY_TCP, BY_MEMORY = Guess(6e-6, 1.2e9, 50000), Guess(0.3e-6, 5e9, 500000)
ITERATIONS_MIN = 100
SIZE_UNITS = {"": 1, "k": KI, "m": MI, "g": KI * MI}


def iterations(size, seconds, ways, guess=BY_TCP):
    count = int(seconds / ways / (guess.message_seconds + size / guess.octets_per_second))
    return max(ITERATIONS_MIN, min(count, guess.iterations_max))


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
    """fi_pingpong knows no test but its ping-pong, and prints its mean alone. providers: by the endpoint."""

    program_name, package = "fi_pingpong", "libfabric-bin"

    def __init__(self, providers):
        self.providers = providers

    def missing(self):
        """Also where its library was built without one of them, or the machine does not allow it."""
        return super().missing() or next(filter(None, map(why_no_provider, self.providers.values())), None)

    def run(self, bed, series, seconds):
        size, endpoint = series.keys["size"], series.keys["endpoint"]
        line = (f"fi_pingpong -p {self.providers[endpoint]} -e {endpoint} -S {size} "
                f"-I {iterations(size, seconds, 2)}")
        return parse_pingpong(self.pair(bed, (line + " -B {port}", line + " -P {port} {address}")),
                              size)


def why_no_provider(name):
    """None where libfabric offers it."""
    try:
        done = subprocess.run(["fi_info", "-p", name], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"fi_info does not run: {error}"
    if done.returncode == 0:
        return None
    return f"libfabric offers no provider {name} here: {' '.join(done.stderr.split())[-200:]}"


def parse_pingpong(output, size):
    """Its table has one row: bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec."""
    rows = [line.split() for line in output.splitlines() if re.match(r" *\d", line)]
    if len(rows) != 1 or len(rows[0]) != 8 or parse_size(rows[0][0]) != size:
        raise pair.Failure(f"fi_pingpong printed no row for {size} bytes: {output[-200:]!r}")
    return {"transport": "libfabric", "test": "latency", "size": size,
            "usec": {"mean": float(rows[0][6])}}


def parse_size(text):
    number, unit = re.fullmatch(r"([\d.]+)([kmg]?)", text.lower()).groups()
    return int(float(number) * SIZE_UNITS[unit])


class Ucx(Comparator):
    """ucx_perftest: the server learns from the client what to do. transports: UCX_TLS; it has no other, so that two
    processes of one machine share memory only where it says so."""

    program_name, package = "ucx_perftest", "ucx-utils"

    def __init__(self, transports):
        self.transports = transports

    def settings(self, bed):
        own = {"UCX_TLS": self.transports, "UCX_WARN_UNUSED_ENV_VARS": "n"}
        return {**own, "UCX_NET_DEVICES": "lo"} if bed.name == "loopback" and self.transports == "tcp" else own

    def run(self, bed, series, seconds):
        size, test = series.keys["size"], series.test
        line = "ucx_perftest -p {port}"
        output = self.pair(bed, (line, f"{line} -t {UCX_TESTS[test]} -s {size} -n {self.count(size, test, seconds)} "
                                       f"-w {WARM_UP} -v {{address}}"), self.settings(bed))
        return parse_perftest(output, test, size)

    def count(self, size, test, seconds):
        """Ends that ping-pong through memory spin, and where they have to share a processor they are no faster than
        over TCP."""
        if test.endswith("lat"):
            return iterations(size, seconds, 2)
        return iterations(size, seconds, 1, BY_TCP if self.transports == "tcp" else BY_MEMORY)


def programs():
    """By the name that a series has for them."""
    return {"libfabric": Libfabric({"msg": "tcp", "rdm": "tcp;ofi_rxm"}), "libfabric-shm": Libfabric({"rdm": "shm"}),
            "ucx": Ucx("tcp"), "ucx-shm": Ucx("posix,cma,self")}


def parse_perftest(output, test, size):
    """The CSV's last row: iterations, 50.0_percentile_lat, avg_lat, overall_lat, avg_bw,
    overall_bw, avg_mr, overall_mr. Its MB are 2^20 bytes."""
    rows = [line.split(",") for line in output.splitlines() if re.match(r" *\d+,", line)]
    if not rows or len(rows[-1]) != 8:
        raise pair.Failure(f"ucx_perftest printed no result: {output[-200:]!r}")
    row = [float(field) for field in rows[-1]]
    result = {"transport": "ucx", "test": test, "size": size, "iterations": int(row[0])}
    if test.endswith("_lat"):
        return {**result, "usec": {"median": row[1], "mean": row[3]}}
    return {**result, "octets_per_second": row[7] * size, "messages_per_second": row[7]}
