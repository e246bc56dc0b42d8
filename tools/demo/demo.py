# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs Debian's own RDMA programs, and a sockets program, over anywarp, two processes on this machine,
and prints one table of what ran and how fast, beside raw TCP measured in the same run.

usage: demo.py BUILD_DIR YARDSTICK"""

import collections
import os
import pathlib
import re
import shlex
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import beds  # noqa: E402
import jobs  # noqa: E402
import program  # noqa: E402

MTUS = (1500, 9000)
JOB_SECONDS_MAX = 30
ROUNDS = 2
# A problem ends in a row of its own; only its first line goes into the table.
PROBLEM_CHARACTERS_MAX = 60

# raw: {yardstick: figure}; ours is None for what is not timed or has failed.
Row = collections.namedtuple("Row", "job bed problem ours raw")


class Demo:
    """Collects rows while it tells how far it is."""

    def __init__(self, build, yardstick):
        self.anywarp = os.path.join(build, "bin", "anywarp")
        self.yardstick = yardstick
        self.rows = []
        self.total = 0

    def pair(self, bed, server, client):
        port = program.free_port()
        line = {"address": bed.address, "port": port}
        return program.run_pair(bed.server_prefix + shlex.split(server.format(**line)),
                                bed.client_prefix + shlex.split(client.format(**line)),
                                port, seconds=JOB_SECONDS_MAX)

    def raw(self, bed, job):
        """{yardstick: figure} of TCP between the same two ends."""
        figures = {}
        for verb in job.yardsticks:
            outcome = self.pair(bed, f"{self.yardstick} server {{address}} {{port}}",
                                f"{self.yardstick} client {{address}} {{port}} {verb} {job.size}")
            if outcome.problem:
                sys.exit(f"demo: TCP itself failed: {outcome.problem}")
            figures[verb] = float(outcome.client)
        return figures

    def run(self, bed, job):
        """TCP and the program in turn, twice where they are timed: the best of each counts, as
        what else the machine does weighs on both alike."""
        self.announce(bed, job)
        began = time.monotonic()
        problem, figures, raw = "", [], []
        for _ in range(ROUNDS if job.yardsticks else 1):
            raw.append(self.raw(bed, job))
            problem, figure = self.program(bed, job)
            if problem:
                break
            figures.append(figure)
        best = {verb: jobs.best(job, [each[verb] for each in raw]) for verb in job.yardsticks}
        ours = jobs.best(job, figures) if job.yardsticks and not problem else None
        self.rows.append(Row(job, bed, problem, ours, best))
        print(f"{'FAILED' if problem else 'ok'}, {time.monotonic() - began:.1f} s", flush=True)

    def program(self, bed, job):
        """(problem or '', figure or None) of one run."""
        launch = shlex.join([self.anywarp, *job.under, "--"]) + " "
        outcome = self.pair(bed, launch + job.server, launch + job.client)
        if outcome.problem:
            return outcome.problem, None
        if not re.search(job.wanted, outcome.client):
            return f"did not print what it should:\n{outcome.client}", None
        return "", jobs.figure(job, outcome.client) if job.yardsticks else None

    def announce(self, bed, job):
        print(f"[{len(self.rows) + 1:2}/{self.total}] {job.name}, {job.size}, {bed.name}{jobs.way(job)}: ",
              end="", flush=True)


def line_of(row):
    head = f"{row.job.name:13}{row.job.size:>15}  {row.bed.name + jobs.way(row.job):18}"
    if row.problem:
        return f"{head}FAILED  {row.problem.splitlines()[0][:PROBLEM_CHARACTERS_MAX]}"
    if row.ours is None:
        return f"{head}ok"
    line = f"{head}ok     {row.ours:9.2f} {jobs.unit(row.job):4}"
    for raw in row.raw.values():
        line += f" {raw:9.2f} {jobs.ratio(row.job, row.ours, raw):6.2f}"
    return line


def print_table(rows):
    print(f"\n{'program':13}{'size':>15}  {'between':18}{'result':7}{'anywarp':>9}     "
          f"{'raw TCP':>10}{'ratio':>7}{'spinning':>10}{'ratio':>7}")
    for row in rows:
        print(line_of(row))
    print("\nSizes are in octets, latencies medians: there and back for ib_read_lat, one way for the"
          "\nothers. Raw TCP waits in recv, spinning TCP polls as the programs do. A ratio above 1 is"
          "\nbetter than TCP of the same run; each is the best of two runs in turn. 'memory' is the host path, docs/host-path.md.")


def print_failures(rows):
    for row in rows:
        if row.problem:
            print(f"\n---- {row.job.name} {row.job.size}, {row.bed.name}{jobs.way(row.job)}: {row.problem}")


def run_beds(demo, loopback_jobs):
    """Runs everything; returns why there was no namespace, or None."""
    veth_jobs = jobs.across_namespaces()
    demo.total = len(loopback_jobs) + len(MTUS) * len(veth_jobs)
    for job in loopback_jobs:
        demo.run(beds.LOOPBACK, job)
    try:
        for mtu in MTUS:
            with beds.VethBed(mtu) as bed:
                for job in veth_jobs:
                    demo.run(bed, job)
    except beds.NotAllowed as error:
        return str(error)
    return None


def main(build, yardstick):
    demo = Demo(build, yardstick)
    why_fewer = run_beds(demo, jobs.programs() + jobs.measured())
    print_table(demo.rows)
    if why_fewer:
        print(f"Only loopback: {why_fewer}")
    print_failures(demo.rows)
    failed = sum(bool(row.problem) for row in demo.rows)
    print(f"\ndemo: {len(demo.rows) - failed} ok, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
