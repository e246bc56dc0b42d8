# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Our own programs: bench-tcp and bench-verbs. PROGRAM server ADDRESS PORT prints "ready" and
serves one session; PROGRAM client ADDRESS PORT TEST key=value ... prints one JSON object."""

import json
import os
import subprocess

import pair
import program

HANDOVER, HANDOVER_SECONDS_MAX = "bench-handover", 12
# By the name that a series has for them, with their environment. Two ends on one host would leave TCP, which stands
# for the network here, but for what "verbs-host" measures.
OVER_TCP = {"ANYWARP_HOST_PATH": "off"}
PROGRAMS = {"tcp": ("bench-tcp", {}), "verbs": ("bench-verbs", OVER_TCP),
            "verbs-roce": ("bench-verbs", {**OVER_TCP, "ANYWARP_PERSONA": "roce"}),
            "verbs-host": ("bench-verbs", {"ANYWARP_HOST_PATH": "auto"})}
# Beyond what a run measures: thousands of connections are made, two processes begin and end.
SECONDS_MAX = 30
SECONDS_PER_THOUSAND = 6
TIMED_TESTS = ("latency", "bandwidth", "hotspot")


class Worker:
    """Runs the series of one of the programs. known: what PROGRAMS is."""

    def __init__(self, name, folder, libraries, known=None):
        program_name, settings = (known or PROGRAMS)[name]
        self.path = os.path.join(folder, program_name)
        self.env = {**os.environ, **settings}
        # Ours for our own programs alone: libfabric and UCX load libibverbs as well.
        if libraries and program_name == "bench-verbs":
            old = self.env.get("LD_LIBRARY_PATH")
            self.env["LD_LIBRARY_PATH"] = f"{libraries}:{old}" if old else libraries

    def missing(self):
        """Why it cannot run, or None."""
        if os.access(self.path, os.X_OK):
            return None
        return f"no program {self.path}: build it ('./dev build') or install anywarp again"

    def arguments(self, series, seconds):
        keys = dict(series.keys)
        if series.test in TIMED_TESTS and "iterations" not in keys:
            keys["seconds"] = seconds
        return [series.test, *(f"{key}={value}" for key, value in keys.items())]

    def run(self, bed, series, seconds):
        """The JSON of one run."""
        with program.borrowed_port() as port:
            where = [bed.address, str(port)]
            output = pair.run(pair.Pair(
                bed=bed, port=port, ready="ready", env=self.env,
                server=[self.path, "server", *where],
                client=[self.path, "client", *where, *self.arguments(series, seconds)],
                seconds=time_out(series, seconds)))
        try:
            return json.loads(output)
        except ValueError as error:
            raise pair.Failure(f"client printed no JSON: {output.strip()[:200]!r}") from error


def handover_ns(folder):
    """What one CPU needs to hand a word to another, now; None where that cannot be measured."""
    try:
        done = subprocess.run([os.path.join(folder, HANDOVER)], capture_output=True, text=True,
                              timeout=HANDOVER_SECONDS_MAX, check=True)
        return json.loads(done.stdout)["handover_ns"]
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def time_out(series, seconds):
    many = max(series.keys.get(key, 0) for key in ("connections", "clients"))
    return SECONDS_MAX + 4 * seconds + SECONDS_PER_THOUSAND * many / 1000
