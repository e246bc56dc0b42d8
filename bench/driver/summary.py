# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The page's first lines: what the run says in a few sentences, and what the names of its series mean."""

import record
import values
from values import KI, MI


def figure(results, key, name, value):
    """A series' median with its unit, or None where the run has none."""
    point = next((each for each in results["points"] if each["key"] == key), None)
    series = record.find_series(point, name) if point else None
    found = series["summary"].get(value) if series else None
    return f"{values.text(value, found['median'])} {values.VALUES[value].unit}" if found else None


# (sentence, {name in it: (point, series, value)}). A sentence that lacks a figure is left out.
SENTENCES = (
    ("A message of 4 bytes takes {send} one way between two ends that poll, and {event} between two that sleep; over raw TCP "
     "it takes {tcp} and {block}.",
     {"send": ("latency/loopback/4", "send-spin", "latency"), "event": ("latency/loopback/4", "send-event", "latency"),
      "tcp": ("latency/loopback/4", "tcp-spin", "latency"), "block": ("latency/loopback/4", "tcp-block", "latency")}),
    ("RDMA Writes of 1 MiB run at {write}, raw TCP at {tcp}.",
     {"write": (f"bandwidth/loopback/{MI}", "write", "bandwidth"), "tcp": (f"bandwidth/loopback/{MI}", "tcp", "bandwidth")}),
    ("Between two ends that sleep while there is nothing to do, Sends of 1 MiB cost {send} of processor time, both ends together; "
     "raw TCP costs {tcp}.",
     {"send": (f"bandwidth/loopback/{MI}", "send-event", "cpu_per_gb"), "tcp": (f"bandwidth/loopback/{MI}", "tcp", "cpu_per_gb")}),
    ("Through an interface with an MTU of 1500, Writes of 1 MiB run at {write}, raw TCP at {tcp}.",
     {"write": (f"bandwidth/veth-1500/{MI}", "write", "bandwidth"), "tcp": (f"bandwidth/veth-1500/{MI}", "tcp", "bandwidth")}),
    ("Between two programs of one host, which anywarp connects through memory, 4 bytes take {send}, and 64 KiB run at {write}; "
     "raw TCP: {tcp}, {bytes}.",
     {"send": ("host-latency/loopback/4", "send-spin", "latency"), "write": (f"host-bandwidth/loopback/{64 * KI}", "write", "bandwidth"),
      "tcp": ("host-latency/loopback/4", "tcp-spin", "latency"), "bytes": (f"host-bandwidth/loopback/{64 * KI}", "tcp", "bandwidth")}),
    ("redis, unmodified, answers 50 clients of its own host {auto} times a second under 'anywarp sockets', {iwarp} over iWARP, and {tcp} over TCP.",
     {"auto": ("redis/loopback/50", "auto", "requests"), "iwarp": ("redis/loopback/50", "iwarp", "requests"),
      "tcp": ("redis/loopback/50", "tcp", "requests")}),
)


def sentences(results):
    made = []
    for text, wanted in SENTENCES:
        found = {name: figure(results, *where) for name, where in wanted.items()}
        if None not in found.values():
            made.append(text.format(**{name: shown.removesuffix(" 1/s") for name, shown in found.items()}))
    return made


# The name's first part, then what may follow it.
FIRST = {
    "tcp": "raw TCP, no anywarp",
    "tls": "plain TLS over TCP by OpenSSL, no anywarp",
    "send": "Sends by verbs",
    "write": "RDMA Writes by verbs",
    "read": "RDMA Reads by verbs",
    "verbs": "connections by rdma_cm",
    "pass-through": "a sockets program under anywarp's library, left to TCP",
    "auto": "a sockets program under 'anywarp sockets', whose two ends on one host are connected by AF_UNIX",
    "iwarp": "a sockets program under 'anywarp sockets --rule on', over iWARP",
    "libfabric": "libfabric's fi_pingpong over its own TCP provider",
    "libfabric-shm": "libfabric's fi_pingpong through shared memory",
    "ucx": "ucx_perftest over UCX's own TCP transport",
    "ucx-shm": "ucx_perftest through shared memory",
}
FURTHER = {
    "spin": "both ends poll",
    "block": "both ends sleep in recv(2)",
    "epoll": "both ends sleep in epoll_wait(2)",
    "event": "both ends sleep on a completion channel",
    "host": "through memory that the two processes share",
    "roce": "in the roce persona, whose completions say that the peer has the message",
    "batch16": "16 messages a post or system call",
    "combined": "small messages combined (no TCP_NODELAY)",
    "cq": "the receiver polls its CQ for a Write with immediate data",
    "done": "until the completion",
    "proxy": "carried by the proxy process",
    "over-tcp": "kept on TCP, for comparison",
    "1": "one thread",
    "2": "two threads",
}


def meaning(name):
    """What a series' name says, or None for a name that says it by itself (ib_send_bw, tag_lat)."""
    first = next((each for each in sorted(FIRST, key=len, reverse=True) if name == each or name.startswith(f"{each}-")), None)
    if not first:
        return None
    said, rest = [FIRST[first]], name[len(first) + 1:]
    while rest:
        part = next((each for each in sorted(FURTHER, key=len, reverse=True) if rest == each or rest.startswith(f"{each}-")), None)
        if part:
            said.append(FURTHER[part])
        part = part or rest
        rest = rest[len(part) + 1:]
    return ", ".join(said)


def names(results):
    """(name, meaning) of each series of the run."""
    seen = dict.fromkeys(series["name"] for point in results["points"] for series in point["series"])
    return [(name, meaning(name)) for name in seen if meaning(name)]
