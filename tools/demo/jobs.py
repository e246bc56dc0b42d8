# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The jobs of the demo: command lines, what each must print, and the TCP job to compare it with."""

import collections
import re

SIZES = (64, 65536)
BW_ITERATIONS = {64: 20000, 65536: 5000}
LAT_ITERATIONS = {64: 5000, 65536: 2000}

# server and client are command lines with {address} and {port} left open; wanted is a pattern
# that the client must print; yardsticks are what tcp_yardstick measures for it, and empty for a
# job that is not timed. under is what of 'anywarp' both run under.
Job = collections.namedtuple("Job", "name size server client wanted yardsticks under",
                             defaults=(("run",),))


def untimed(name, what, server, client, wanted):
    return Job(name, what, server, client, wanted, ())


def rping():
    common = "-a {address} -p {port} -C 100 -v -V"
    return untimed("rping", "100 pings", f"rping -s {common}", f"rping -c {common}",
                   r"(?:ping data: [^\n]*\n){100}")


def iperf3():
    """A sockets program, untouched: with this rule it cannot fall back to TCP."""
    return Job("iperf3", "a second", "iperf3 -s -1 -p {port}", "iperf3 -c {address} -p {port} -t 1",
               r"(?m)sec .*receiver$", (), ("sockets", "--rule", "on"))


def programs():
    return [
        rping(),
        untimed("rdma_client", "1 message", "rdma_server -p {port}",
                "rdma_client -s {address} -p {port}", r"rdma_client: end 0"),
        untimed("ucmatose", "10 connections", "ucmatose -b {address} -p {port} -c 10 -C 10",
                "ucmatose -s {address} -p {port} -c 10 -C 10", r"return status 0"),
        iperf3(),
    ]


OVER_TCP, THROUGH_MEMORY = ("run", "--host-path", "off"), ("run", "--host-path", "on")


def way(job):
    """What carries the stream of two ends on one host, where that is told of."""
    return ", memory" if job.under == THROUGH_MEMORY else ""


def perftest(verb, kind, size, under=OVER_TCP):
    count = (BW_ITERATIONS if kind == "bw" else LAT_ITERATIONS)[size]
    line = f"ib_{verb}_{kind} -R -F -p {{port}} -s {size} -n {count}"
    if kind == "bw":
        line += " --report_gbits"
        yardsticks = ("bw",)
    elif verb == "read":
        yardsticks = ("read", "read-spin")
    else:
        yardsticks = ("lat", "lat-spin")
    return Job(f"ib_{verb}_{kind}", str(size), line, line + " {address}", rf"(?m)^ *{size} ",
               yardsticks, under)


def measured():
    over_tcp = [perftest(verb, kind, size) for kind in ("bw", "lat")
                for verb in ("write", "read", "send") for size in SIZES]
    return over_tcp + [perftest("send", kind, size, THROUGH_MEMORY) for kind in ("bw", "lat") for size in SIZES]


def across_namespaces():
    return [rping(), perftest("write", "bw", 65536)]


def unit(job):
    return "Gb/s" if "bw" in job.yardsticks else "us"


def figure(job, output):
    """The value that perftest printed: its average in Gb/s, or its typical (median) microseconds."""
    column = 3 if unit(job) == "Gb/s" else 4
    rows = re.findall(rf"(?m)^ *{job.size} .*$", output)
    return float(rows[-1].split()[column])


def ratio(job, ours, raw):
    """Above 1 is better than TCP."""
    return ours / raw if unit(job) == "Gb/s" else raw / ours


def best(job, figures):
    return max(figures) if unit(job) == "Gb/s" else min(figures)
