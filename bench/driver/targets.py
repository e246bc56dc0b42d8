# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What anywarp is held to: each target compares two series that ran in turn in one point, round by
round. A row of all_rows() is {"what", "bound": text, "median", "min", "max", "decides": the one of
these that is held to the bound (null where not measured), "met": true | false | null, "note"}."""

import collections

import record
import stats
import values
from values import KI, MI

SOCKET_BYTES_MAX = 8 * KI
SLOWEST_MS_MAX = 5
IDLE_CPU_PERCENT_MAX = 0.1
CORES_FOR_THREADS = 4

# One number for each round comes of measure(point record), None where a run failed. unit follows
# the number; at_least says on which side of the bound it is to be; judge says which number of all
# rounds is held to it; cores is how many a machine needs to show it.
Target = collections.namedtuple("Target", "what point measure bound at_least unit judge cores", defaults=(1,))


def pick(point, name, value):
    return record.numbers(record.find_series(point, name), value)


def over(ours, theirs, value):
    """The ratio of two series of a point."""
    return lambda point: stats.paired_ratios(pick(point, ours, value), pick(point, theirs, value))


def alone(name, value):
    return lambda point: [each for each in pick(point, name, value) if each is not None]


def beyond_socket(point):
    """What a connection costs the process that has it, beyond what one of raw TCP costs."""
    ours, tcp = pick(point, "verbs", "memory"), pick(point, "tcp", "memory")
    return [our - raw for our, raw in zip(ours, tcp) if None not in (our, raw)]


def idle_poll(point):
    idle, busy = pick(point, "verbs", "poll"), pick(point, "verbs", "poll_busy10")
    return stats.paired_ratios(idle, busy)


def at_least(what, point, measure, bound):
    return Target(what, point, measure, bound, True, "", "median")


def at_most(what, point, measure, bound, unit=""):
    return Target(what, point, measure, bound, False, unit, "median")


def bandwidth():
    rows = []
    for bed, name, bound in (("loopback", "loopback", 0.95), ("veth-1500", "veth, MTU 1500", 0.80)):
        for size in (64 * KI, MI):
            rows += [at_least(f"bandwidth, {op.capitalize()}, {values.octets(size)}, {name} / TCP",
                              f"bandwidth/{bed}/{size}", over(op, "tcp", "bandwidth"), bound)
                     for op in ("write", "send")]
    return rows + [at_least("bandwidth, Read, 1 Mi, loopback / TCP", f"bandwidth/loopback/{MI}",
                            over("read", "tcp", "bandwidth"), 0.90)]


def latency():
    lat = "latency/loopback/4"
    return [
        at_most("latency, 4 bytes, Send, CQ polled / spinning TCP", lat,
                over("send-spin", "tcp-spin", "latency"), 1.25),
        at_most("latency, 4 bytes, Send, CQ events / blocking TCP", lat,
                over("send-event", "tcp-block", "latency"), 1.25),
        at_most("latency, 4 bytes, Write, memory polled / blocking TCP", "worst/loopback/4",
                over("write", "tcp-block", "latency"), 1.1),
        at_most("slowest of 20,000 of these Writes", "worst/loopback/4",
                lambda point: [us / 1000 for us in alone("write", "slowest")(point)],
                SLOWEST_MS_MAX, " ms")._replace(judge="max"),
    ]


def small_and_many():
    rows = [at_least(f"message rate, 64 bytes, {op.capitalize()} one a post, window 128 / TCP one a "
                     "send", "rate/loopback/64", over(op, "tcp", "rate"), 4)
            for op in ("write", "send")]
    rows += [at_most(f"CPU per GB, 1 Mi, {op.capitalize()} with events, both ends / TCP",
                     f"bandwidth/loopback/{MI}", over(f"{op}-event", "tcp", "cpu_per_gb"), 1.2)
             for op in ("write", "send", "read")]
    rows += [at_most(f"CPU per GB, 1 Mi, {op.capitalize()} with events, veth, MTU 1500, both ends / TCP",
                     f"bandwidth/veth-1500/{MI}", over(f"{op}-event", "tcp", "cpu_per_gb"), 1.4)
             for op in ("write", "send", "read")]
    return rows + [
        at_most("connection set-up / TCP", "connect/loopback/300",
                over("verbs", "tcp", "connect"), 2),
        at_most("connection set-up, 64 at once, to the first byte / TCP", "connect-at-once/loopback/64",
                over("verbs", "tcp", "first_octet"), 2),
        at_most("hot-spot, 512 clients, latency / TCP", "hotspot/loopback/512",
                over("send-event", "tcp-epoll", "latency"), 1.3),
        at_most("through memory, hot-spot, 512 clients, latency / TCP", "hotspot/loopback/512",
                over("send-event-host", "tcp-epoll", "latency"), 1.2),
    ]


def idle():
    point = "idle/loopback/10000"
    return [
        at_most("10,000 idle: bytes for each, beyond TCP's", point, beyond_socket,
                SOCKET_BYTES_MAX),
        at_most("10,000 idle: poll_cq / with 10 busy ones", point, idle_poll, 1),
        at_most("10,000 idle: CPU of a process", point, alone("verbs", "idle_cpu"),
                IDLE_CPU_PERCENT_MAX, " %"),
    ]


def threads():
    return [at_least("message rate, 2 threads / 1", "threads/loopback/2",
                     over("send-2", "send-1", "rate"), 1.8)._replace(cores=CORES_FOR_THREADS)]


def engines():
    return [at_least(f"8 QPs, batches, {op.capitalize()}, 1 Mi, roce persona / TCP", f"engines/loopback/{MI}",
                     over(f"{op}-roce", "tcp", "bandwidth"), 0.8) for op in ("write", "read")]


def event_server():
    return [at_least(f"{where}event-driven server, {clients} clients, a channel each, messages / TCP",
                     f"event-server/loopback/{clients}", over(series, "tcp-epoll", "rate"), 0.9)
            for where, series in (("", "write-epoll"), ("through memory, ", "write-epoll-host")) for clients in (1, 50)] + [
        at_most(f"event-driven server, {clients} clients, CPU a message, both ends / TCP", f"event-server/loopback/{clients}",
                over("write-epoll", "tcp-epoll", "cpu_per_million"), 1.15) for clients in (1, 50)]


def tls():
    """Within 10 % of plain TLS over TCP by the same library."""
    rows = []
    for size in (64 * KI, MI):
        for op in ("write", "send", "read"):
            what, point = f"under TLS, {op.capitalize()}, {values.octets(size)}", f"tls-bandwidth/loopback/{size}"
            rows += [at_least(f"{what}, bandwidth / plain TLS", point, over(f"{op}-event", "tls-block", "bandwidth"), 0.9),
                     at_most(f"{what}, CPU per GB, both ends / plain TLS", point,
                             over(f"{op}-event", "tls-block", "cpu_per_gb"), 1.1)]
    return rows


def perftest():
    paths = (("", ""), ("through memory, ", "-host"))
    rows = [at_least(f"{where}perftest, ib_{op}_bw -R, 1 Mi / TCP", f"perftest/loopback/{MI}",
                     over(f"{op}_bw{suffix}", "tcp", "bandwidth"), 0.95)
            for where, suffix in paths for op in ("write", "send", "read")]
    return rows + [at_most(f"{where}perftest, ib_{op}_lat -R, 4 bytes / blocking TCP", "perftest-latency/loopback/4",
                           over(f"{op}_lat{suffix}", "tcp-block", "latency"), 1.05)
                   for where, suffix in paths for op in ("write", "send", "read")]


def others():
    rows = []
    for size in (64 * KI, MI):
        shown = values.octets(size)
        rows += [
            at_least(f"bandwidth, {shown}, Send / UCX tag", f"others-bandwidth/loopback/{size}",
                     over("send", "ucx-tag_bw", "bandwidth"), 1),
            at_least(f"bandwidth, {shown}, Write / UCX put", f"others-bandwidth/loopback/{size}",
                     over("write", "ucx-put_bw", "bandwidth"), 1),
            *(at_most(f"ping-pong, {shown}, Send / libfabric {endpoint}",
                      f"others-latency/loopback/{size}",
                      over("send-spin", f"libfabric-{endpoint}", "latency_mean"), 1)
              for endpoint in ("msg", "rdm"))]
    small = "others-latency/loopback/4"
    pairs = (("Send", "send-spin", "libfabric msg", "libfabric-msg"),
             ("Send", "send-spin", "libfabric rdm", "libfabric-rdm"),
             ("Send", "send-spin", "UCX tag", "ucx-tag_lat"),
             ("Write", "write", "UCX put", "ucx-put_lat"))
    return rows + [at_most(f"polled latency, 4 bytes, {op} / {name}", small,
                           over(ours, theirs, "latency_mean"), 1)
                   for op, ours, name, theirs in pairs]


def all_targets():
    return [*bandwidth(), *latency(), *small_and_many(), *idle(), *threads(), *sockets(), *host(), *engines(), *event_server(), *tls(), *perftest(), *others()]


def host():
    """Both ends on one host, where both ask for memory in common."""
    lat = "host-latency/loopback/4"
    rows = [
        at_most("through memory, latency, 4 bytes, Send, CQ polled / spinning TCP", lat,
                over("send-spin", "tcp-spin", "latency"), 0.25),
        at_most("through memory, latency, 4 bytes, Send, CQ events / blocking TCP", lat,
                over("send-event", "tcp-block", "latency"), 0.9),
        at_most("through memory, latency, 4 bytes, Write, memory polled / spinning TCP", lat,
                over("write", "tcp-spin", "latency"), 0.5),
    ]
    rows += [at_least(f"through memory, bandwidth, {op.capitalize()}, {values.octets(size)} / TCP",
                      f"host-bandwidth/loopback/{size}", over(op, "tcp", "bandwidth"), 2.5)
             for size in (64 * KI, MI) for op in ("write", "send")]
    return [*rows, at_least("through memory, message rate, 64 bytes, Send one a post / TCP one a send",
                            "host-rate/loopback/64", over("send", "tcp", "rate"), 10)]


def sockets():
    """Programs that know nothing of RDMA."""
    lat, large, small = ("sockets-latency/loopback/64", f"sockets-bandwidth/loopback/{64 * KI}",
                         "sockets-rate/loopback/64")
    return [
        at_most("sockets, pass-through, latency, 64 bytes / no library", lat,
                over("pass-through", "tcp", "latency"), 1.02),
        at_least("sockets, pass-through, bandwidth, 64 Ki / no library", large,
                 over("pass-through", "tcp", "bandwidth"), 0.98),
        *auto(lat, large),
        at_most("sockets, on (record), latency, 64 bytes / TCP", lat, over("iwarp", "tcp", "latency"), 1.35),
        at_least("sockets, on (record), bandwidth, 64 Ki / TCP", large,
                 over("iwarp", "tcp", "bandwidth"), 0.85),
        at_most("sockets, on (record), CPU per GB, 64 Ki, both ends / TCP", large, over("iwarp", "tcp", "cpu_per_gb"), 1.2),
        at_least("sockets, on (record), 64 bytes streamed, combined / TCP_NODELAY", small,
                 over("iwarp-combined", "tcp", "rate"), 1),
        *servers(),
    ]


def auto(lat, large):
    """The default mode, whose two ends on one host have a pair of the kernel's."""
    def ratio(value):
        return over("auto", "tcp", value)

    served = (("redis/loopback/1", "redis, 1 client"), ("redis/loopback/50", "redis, 50 clients"),
              ("nginx/loopback/50", "nginx, 50 connections"), ("memcached/loopback/16", "memcached, 16 connections"),
              ("pgbench/loopback/select", "pgbench, 8 clients"))
    return [
        at_most("sockets, auto (pair), latency, 64 bytes / TCP", lat, ratio("latency"), 0.85),
        at_least("sockets, auto (pair), bandwidth, 64 Ki / TCP", large, ratio("bandwidth"), 1.6),
        at_least("sockets, auto (pair), connections a second / TCP", "sockets-connect/loopback/1000",
                 ratio("connects_per_second"), 0.6),
        *(at_least(f"{name}, auto (pair) / TCP", point, ratio("requests"), 1.2) for point, name in served),
        at_most("empty RPC, auto (pair) / TCP", "rpc/loopback/0", ratio("latency_whole"), 0.85),
        *(at_least(f"FTP, {values.octets(size)}, auto (pair) / TCP", f"ftp/loopback/{size}", ratio("bandwidth"), 1.5)
          for size in (19 * MI, 145 * MI))]


def servers():
    """Programs that poll, and servers that many know."""
    rows = []
    for mode in ("block", "poll", "epoll", "epoll-edge"):
        rows += [at_most(f"sockets, on (record), latency, 64 bytes, {mode} / TCP", f"sockets-waits/loopback/{mode}",
                         over("iwarp", "tcp", "latency"), 1.2),
                 at_least(f"sockets, on (record), bandwidth, 64 Ki, {mode} / TCP", f"sockets-waits-bandwidth/loopback/{mode}",
                          over("iwarp", "tcp", "bandwidth"), 0.85)]
    for point, name in (("redis/loopback/1", "redis, 1 client"), ("redis/loopback/50", "redis, 50 clients"),
                        ("nginx/loopback/50", "nginx, 50 connections")):
        rows += [at_least(f"{name}, on (record) / TCP", point, over("iwarp", "tcp", "requests"), 0.85),
                 at_least(f"{name}, pass-through / TCP", point, over("pass-through", "tcp", "requests"), 0.98)]
    return rows + [
        at_least("sockets, on (record), connections a second / TCP", "sockets-connect/loopback/1000",
                 over("iwarp", "tcp", "connects_per_second"), 0.4),
        at_most("sockets, on (record), 1,000 idle: bytes for each", "sockets-idle/loopback/1000",
                alone("iwarp", "memory_shared"), 16 * KI)]


def bound_text(target):
    return f"{'>=' if target.at_least else '<='} {target.bound:g}{target.unit}"


def why_nothing(results, target):
    """Why no round has a number."""
    point = next((each for each in results["points"] if each["key"] == target.point), None)
    if point is None:
        bed = target.point.split("/")[1]
        why = [each["why"] for each in results["skipped"] if each["what"] == bed]
        return why[0] if why else "not in this run"
    for series in point["series"]:
        if "skipped" in series:
            return series["skipped"]
        if record.has_failed(series):
            return "a run failed"
    return "not measured"


def row(results, target):
    point = next((each for each in results["points"] if each["key"] == target.point), None)
    found = stats.summary(target.measure(point)) if point else None
    text = {"what": target.what, "bound": bound_text(target), "point": target.point,
            "unit": target.unit, "note": ""}
    if not found:
        return {**text, "median": None, "min": None, "max": None, "decides": None, "met": None,
                "note": why_nothing(results, target)}
    judged = found[target.judge]
    met = judged >= target.bound if target.at_least else judged <= target.bound
    return {**text, **found, "decides": judged, "met": met}


def all_rows(results):
    """Of those targets that the machine can show."""
    cores = results["machine"].get("cores") or 0
    return [row(results, target) for target in all_targets() if cores >= target.cores]
