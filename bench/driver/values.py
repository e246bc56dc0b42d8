# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which number of a run's JSON counts, by name, and how it is written for people."""

import collections

KI, MI = 1024, 1024 * 1024
GIGA, MEGA = 1e9, 1e6

# take gives the number of one run's JSON, or None; scale turns it into the unit for people.
Value = collections.namedtuple("Value", "take unit scale digits better")


def cpu_seconds(run):
    """Of both ends together."""
    cpu = run.get("cpu") or {}
    if "both_seconds" in cpu:
        return cpu["both_seconds"]
    ends = [cpu.get("client_seconds"), cpu.get("server_seconds")]
    return None if None in ends else sum(ends)


def cpu_per(run, amount, each):
    seconds = cpu_seconds(run)
    return seconds * each / amount if seconds is not None and amount else None


def both_ends(pair):
    return (pair or {}).get("client"), (pair or {}).get("server")


def larger_end(pair):
    ends = [end for end in both_ends(pair) if end is not None]
    return max(ends) if ends else None


def shared_memory(run):
    """Of each end, with the part of what it shares that falls to it."""
    each = run.get("octets_per_connection") or {}
    return {end: each.get(f"{end}_pss") for end in ("client", "server")}


def usec(name):
    return lambda run: run.get("usec", {}).get(name)


VALUES = {
    "latency": Value(usec("median"), "µs", 1, 2, "less"),
    "latency_mean": Value(usec("mean"), "µs", 1, 2, "less"),
    "latency_p99": Value(usec("p99"), "µs", 1, 2, "less"),
    "latency_whole": Value(usec("median"), "µs", 1, 2, "less"),
    "latency_p99_whole": Value(usec("p99"), "µs", 1, 2, "less"),
    "slowest": Value(usec("max"), "ms", 1e-3, 2, "less"),
    "bandwidth": Value(lambda run: run.get("octets_per_second"), "MB/s", 1e-6, 0, "more"),
    "bandwidth_read": Value(lambda run: run.get("read_octets_per_second"), "MB/s", 1e-6, 0, "more"),
    "rate": Value(lambda run: run.get("messages_per_second"), "M/s", 1e-6, 3, "more"),
    "cpu_per_gb": Value(lambda run: cpu_per(run, run.get("octets"), GIGA), "s/GB", 1, 3, "less"),
    "cpu_per_million": Value(lambda run: cpu_per(run, run.get("messages"), MEGA), "s/M", 1, 3,
                             "less"),
    "cpu_per_operation": Value(lambda run: cpu_per(run, run.get("operations"), MEGA), "µs", 1, 2, "less"),
    "cpu_per_connection": Value(lambda run: cpu_per(run, run.get("parameters", {}).get("count"), 1), "µs", 1e6, 0, "less"),
    "updates": Value(lambda run: run.get("updates_per_second"), "1/s", 1, 1, "more"),
    "partial": Value(lambda run: run.get("usec_partial", {}).get("median"), "µs", 1, 0, "less"),
    "reaction": Value(lambda run: run.get("usec_reaction"), "µs", 1, 0, "less"),
    "work_seconds": Value(lambda run: run.get("work_seconds"), "s", 1, 3, "less"),
    "keys": Value(lambda run: run.get("keys_per_second"), "M/s", 1e-6, 2, "more"),
    "connect": Value(lambda run: run.get("usec_connect", {}).get("median"), "µs", 1, 0, "less"),
    "connects_per_second": Value(lambda run: run.get("per_second"), "1/s", 1, 0, "more"),
    "first_octet": Value(lambda run: run.get("usec_first_octet", {}).get("median"), "µs", 1, 0,
                         "less"),
    "memory": Value(lambda run: larger_end(run.get("octets_per_connection")), "KiB", 1 / KI, 2,
                    "less"),
    "memory_shared": Value(lambda run: larger_end(shared_memory(run)), "KiB", 1 / KI, 2, "less"),
    "requests": Value(lambda run: run.get("requests_per_second"), "1/s", 1, 0, "more"),
    "poll": Value(lambda run: run.get("poll_ns"), "ns", 1, 0, "less"),
    "poll_busy10": Value(lambda run: run.get("poll_ns_busy10"), "ns", 1, 0, "less"),
    "idle_cpu": Value(lambda run: larger_end(run.get("idle_cpu_percent")), "%", 1, 3, "less"),
}


def take(name, run):
    """The named number of a run's JSON; None where the run has none."""
    return VALUES[name].take(run)


def text(name, number):
    """The number in its unit for people, without the unit."""
    if number is None:
        return "-"
    value = VALUES[name]
    shown = number * value.scale
    digits = value.digits
    if digits and abs(shown) >= 1000:
        digits = 0
    return f"{shown:.{digits}f}"


def octets(count):
    """64, 1 Ki, 64 Ki, 1 Mi."""
    for unit, name in ((MI, "Mi"), (KI, "Ki")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)
