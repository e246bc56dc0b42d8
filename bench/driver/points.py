# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is measured. A group is one table and one plot; a point is one row of it; the series of a
point run in turn, round after round. Which worker does it, and with which keys, stands here and
nowhere else."""

import collections

from sockets import WAYS as SOCKET_WAYS
from values import KI, MI

# x is what the rows differ in; values are what the table shows of each series, the first being
# the one that is plotted and compared.
Group = collections.namedtuple("Group", "title x values")
# keys go to the program as key=value; reference names the series that ratios are taken to.
Series = collections.namedtuple("Series", "name program test keys reference")
# run_seconds is what a run takes beyond the time it measures, roughly: for the time left.
Point = collections.namedtuple("Point", "group bed x series run_seconds")

GROUPS = {
    "latency": Group("Latency: half a round trip (Read: a whole one)", "bytes", ("latency", "latency_p99")),
    "worst": Group("Slowest of 20,000 half round trips, 4 bytes", "bytes",
                   ("slowest", "latency")),
    "bandwidth": Group("Bandwidth, one way", "bytes",
                       ("bandwidth", "cpu_per_gb", "cpu_per_million")),
    "bandwidth-bi": Group("Bandwidth, both ways at once (sum)", "bytes", ("bandwidth",)),
    "window": Group("Bandwidth by window, 64 Ki bytes", "window", ("bandwidth",)),
    "window-small": Group("Message rate by window, 64 bytes", "window", ("rate",)),
    "rate": Group("Message rate", "bytes", ("rate", "cpu_per_million")),
    "threads": Group("Message rate by threads, 64 bytes, a connection each", "threads",
                     ("rate",)),
    "connect": Group("Connection set-up", "connections",
                     ("connect", "first_octet", "connects_per_second")),
    "connect-at-once": Group("Connection set-up, some at once, each with 4 bytes there and back: the time of all by their number",
                             "at once", ("first_octet", "connect", "connects_per_second")),
    "streams": Group("Multi-stream: connections between two processes, 64 Ki bytes",
                     "connections", ("bandwidth",)),
    "hotspot": Group("Hot-spot: one server, 64 bytes there and back", "clients", ("latency", "rate")),
    "event-server": Group("Event-driven server: one epoll set, with verbs over a channel for each connection, 64 bytes there and back",
                          "clients", ("rate", "latency", "cpu_per_million")),
    "fan-in": Group("Fan-in: many senders, one receiver, 64 Ki bytes", "peers",
                    ("bandwidth",)),
    "fan-out": Group("Fan-out: one sender, many receivers, 64 Ki bytes", "peers",
                     ("bandwidth",)),
    "idle": Group("Idle connections: memory of a process for each", "connections",
                  ("memory", "poll", "poll_busy10", "idle_cpu")),
    "sockets-latency": Group("A sockets program, untouched: half a round trip", "bytes",
                             ("latency", "latency_p99")),
    "sockets-bandwidth": Group("A sockets program, untouched: bandwidth, one way", "bytes",
                               ("bandwidth", "cpu_per_gb")),
    "sockets-rate": Group("A sockets program, untouched: messages one a send", "bytes",
                          ("rate", "cpu_per_million")),
    "sockets-waits": Group("A sockets program by how it waits: half a round trip, 64 bytes", "waits by",
                           ("latency", "latency_p99")),
    "sockets-waits-bandwidth": Group("A sockets program by how its receiver waits: bandwidth, 64 Ki bytes", "waits by",
                                     ("bandwidth", "cpu_per_gb")),
    "sockets-connect": Group("A sockets program: connections one after the other, each with 4 bytes there and back",
                             "connections", ("connects_per_second", "connect", "first_octet")),
    "sockets-hotspot": Group("A sockets program, epoll: one server, 64 bytes there and back", "clients",
                             ("latency", "rate")),
    "sockets-idle": Group("A sockets program: memory of a process for each idle connection", "connections",
                          ("memory_shared", "idle_cpu")),
    "redis": Group("redis-server and redis-benchmark: GET of 64 bytes", "clients", ("requests", "latency_whole", "cpu_per_operation")),
    "nginx": Group("nginx and wrk: a file of 1 Ki", "connections", ("requests", "cpu_per_operation")),
    "memcached": Group("memcached and memcaslap: 90 % get, 10 % set of 1 KiB", "clients", ("requests", "cpu_per_operation")),
    "pgbench": Group("PostgreSQL and pgbench, 8 clients, prepared statements", "transactions",
                     ("requests", "latency_mean", "cpu_per_operation")),
    "rpc": Group("Empty ONC RPC by libtirpc", "bytes", ("latency_whole", "latency_p99_whole", "cpu_per_operation")),
    "ftp": Group("FTP from memory, vsftpd to tnftp", "bytes", ("bandwidth", "cpu_per_gb")),
    "roce-latency": Group("The roce persona, which acknowledges, beside iwarp: half a round trip",
                          "bytes", ("latency", "latency_p99")),
    "roce-done": Group("The roce persona, one Send under way: from its post to its completion",
                       "bytes", ("latency_whole", "latency_p99_whole")),
    "roce-rate": Group("The roce persona, which acknowledges, beside iwarp: message rate",
                       "bytes", ("rate", "cpu_per_million")),
    "host-latency": Group("Two ends on one host, through memory: half a round trip", "bytes",
                          ("latency", "latency_p99", "latency_mean")),
    "host-bandwidth": Group("Two ends on one host, through memory: bandwidth, one way", "bytes",
                            ("bandwidth", "cpu_per_gb")),
    "host-rate": Group("Two ends on one host, through memory: message rate", "bytes", ("rate", "cpu_per_million")),
    "tls-latency": Group("Under TLS, beside plain TLS over TCP: half a round trip", "bytes", ("latency", "latency_p99")),
    "tls-bandwidth": Group("Under TLS, beside plain TLS over TCP: bandwidth, one way", "bytes", ("bandwidth", "cpu_per_gb")),
    "tls-connect": Group("Under TLS, beside plain TLS over TCP: connection set-up; plain TLS has full handshakes, anywarp resumes", "connections",
                         ("first_octet", "connect", "connects_per_second", "cpu_per_connection")),
    "engines": Group("As a transfer engine: 8 QPs, batches of 16, both ends polling", "bytes",
                     ("bandwidth", "cpu_per_gb")),
    "perftest": Group("perftest with -R, beside TCP: bandwidth, one way", "bytes", ("bandwidth",)),
    "perftest-latency": Group("perftest with -R, beside TCP: half a round trip", "bytes", ("latency", "latency_p99")),
    "others-latency": Group("Beside libfabric and UCX: ping-pong, half a round trip, mean",
                            "bytes", ("latency_mean",)),
    "others-bandwidth": Group("Beside UCX: bandwidth, one way", "bytes", ("bandwidth",)),
}

# What it takes two processes to begin, meet and end.
PAIR_SECONDS = 0.06
BEDS = ("loopback", "veth-1500", "veth-9000", "wan")
WINDOW = 64
SMALL_WINDOW = 128

LATENCY_SIZES = (1, 4, 16, 64, 256, KI, 4 * KI, 16 * KI, 64 * KI, 256 * KI, MI)
BANDWIDTH_SIZES = (64, 256, KI, 4 * KI, 16 * KI, 64 * KI, 256 * KI, MI, 4 * MI, 16 * MI)
WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)


# What each length of a run takes of the list above; limit is the seconds after which it had better
# be over, or None.
Form = collections.namedtuple(
    "Form", "rounds seconds limit latency bandwidth bidirectional windows rates streams hotspot fan idle "
    "veth_latency veth_bandwidth mtus roce engines")

FORMS = {
    "full": Form(7, 0.35, None, LATENCY_SIZES, BANDWIDTH_SIZES, BANDWIDTH_SIZES, WINDOWS, (8, 64, 512),
                 (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
                 (1, 2, 4, 8, 16), (1, 10, 100, 1000, 10000), (4, KI, 64 * KI),
                 (KI, 16 * KI, 64 * KI, 256 * KI, MI), (1500, 9000), (64,),
                 (64 * KI, 256 * KI, MI, 4 * MI)),
    "default": Form(7, 0.3, None, (4, 64, KI, 16 * KI, 64 * KI, MI), (64, KI, 16 * KI, 64 * KI, MI, 16 * MI),
                    (KI, 64 * KI, MI), (1, 4, 16, 128), (64,), (1, 8, 64), (1, 16, 128, 512),
                    (1, 4, 16), (100, 10000), (4,), (64 * KI, MI), (1500, 9000), (), (MI,)),
    "short": Form(3, 0.15, 110, (4,), (64 * KI, MI), (), (), (64,), (), (512,), (), (1000,), (),
                  (64 * KI, MI), (1500,), (), ()),
}


def tcp(name, test, **keys):
    return Series(name, "tcp", test, keys, None)


def verbs(name, reference, test, **keys):
    return Series(name, "verbs", test, keys, reference)


def latency_series(size):
    return (
        tcp("tcp-block", "latency", op="send", mode="block", size=size),
        tcp("tcp-spin", "latency", op="send", mode="spin", size=size),
        tcp("tcp-epoll", "latency", op="send", mode="epoll", size=size),
        verbs("send-spin", "tcp-spin", "latency", op="send", mode="spin", size=size),
        verbs("send-event", "tcp-block", "latency", op="send", mode="event", size=size),
        verbs("write", "tcp-block", "latency", op="write", mode="spin", size=size),
        verbs("write-cq", "tcp-spin", "latency", op="write-cq", mode="spin", size=size),
        # A Read is there and back in one: no half of it stands beside TCP's.
        verbs("read", None, "latency", op="read", mode="spin", size=size),
    )


def latency(form):
    return [Point("latency", "loopback", size, latency_series(size), PAIR_SECONDS) for size in form.latency]


def worst(_):
    runs = {"mode": "block", "size": 4, "iterations": 20000}
    spins = {**runs, "mode": "spin"}
    return [Point("worst", "loopback", 4, (
        tcp("tcp-block", "latency", op="send", **runs),
        tcp("tcp-spin", "latency", op="send", **spins),
        verbs("write", "tcp-block", "latency", op="write", **spins)), 0.3)]


def bandwidth_series(size, direction, ops=("send", "write", "read"), window=WINDOW):
    keys = {"size": size, "window": window, "direction": direction, "batch": 1}
    return (tcp("tcp", "bandwidth", op="send", **keys),
            *(verbs(op, "tcp", "bandwidth", op=op, **keys) for op in ops))


def one_way(size, ops=("send", "write", "read")):
    """The pollers, and those of ops with both ends asleep while there is nothing to do: what CPU seconds
    are compared by, since TCP's ends sleep as well."""
    pollers = bandwidth_series(size, "uni")
    keys = {**pollers[0].keys, "mode": "event"}
    return (*pollers, *(verbs(f"{op}-event", "tcp", "bandwidth", **{**keys, "op": op}) for op in ops))


def bandwidth(form):
    return [Point("bandwidth", "loopback", size, one_way(size), PAIR_SECONDS)
            for size in form.bandwidth]


def bidirectional(form):
    return [Point("bandwidth-bi", "loopback", size, bandwidth_series(size, "bi", ("send", "write")), PAIR_SECONDS)
            for size in form.bidirectional]


def windows(form):
    points = [Point("window", "loopback", window,
                    bandwidth_series(64 * KI, "uni", window=window), PAIR_SECONDS)
              for window in form.windows]
    return points + [Point("window-small", "loopback", window,
                           bandwidth_series(64, "uni", window=window), PAIR_SECONDS)
                     for window in form.windows]


def rate(form):
    points = []
    for size in form.rates:
        keys = {"size": size, "window": SMALL_WINDOW, "direction": "uni"}
        series = [tcp("tcp", "bandwidth", op="send", batch=1, **keys),
                  tcp("tcp-batch16", "bandwidth", op="send", batch=16, **keys)]
        for op in ("send", "write"):
            series += [verbs(op, "tcp", "bandwidth", op=op, batch=1, **keys),
                       verbs(f"{op}-batch16", "tcp-batch16", "bandwidth", op=op, batch=16, **keys)]
        points.append(Point("rate", "loopback", size, tuple(series), PAIR_SECONDS))
    return points


def threads(_):
    keys = {"op": "send", "size": 64, "window": SMALL_WINDOW, "direction": "uni", "batch": 1}
    one, two = {"streams": 1, "threads": 1, **keys}, {"streams": 1, "threads": 2, **keys}
    series = (tcp("tcp-1", "bandwidth", **one), tcp("tcp-2", "bandwidth", **two),
              verbs("send-1", "tcp-1", "bandwidth", **one),
              verbs("send-2", "send-1", "bandwidth", **two))
    return [Point("threads", "loopback", 2, series, PAIR_SECONDS)]


def connect(form):
    points = [Point("connect", "loopback", 300, connect_series(count=300), 0.1)]
    if form.limit:
        return points
    return [*points, Point("connect-at-once", "loopback", 64, connect_series(count=640, at_once=64), 0.2)]


def connect_series(**keys):
    return (tcp("tcp", "connect", **keys), verbs("verbs", "tcp", "connect", **keys),
            through_memory("verbs-host", "tcp", "connect", **keys))


def streams(form):
    points = []
    for count in form.streams:
        keys = {"size": 64 * KI, "window": 16, "direction": "uni", "batch": 1, "streams": count}
        series = (tcp("tcp", "bandwidth", op="send", **keys),
                  verbs("send", "tcp", "bandwidth", op="send", **keys),
                  verbs("write", "tcp", "bandwidth", op="write", **keys))
        points.append(Point("streams", "loopback", count, series, PAIR_SECONDS))
    return points


def hotspot(form):
    points = []
    for clients in form.hotspot:
        keys = {"clients": clients, "size": 64}
        series = (tcp("tcp-epoll", "hotspot", mode="epoll", **keys),
                  verbs("send-event", "tcp-epoll", "hotspot", mode="event", **keys),
                  verbs("send-spin", "tcp-epoll", "hotspot", mode="spin", **keys),
                  through_memory("send-event-host", "tcp-epoll", "hotspot", mode="event", **keys))
        points.append(Point("hotspot", "loopback", clients, series, PAIR_SECONDS + clients / 2000))
    return points


def event_server(form):
    """As a key-value server with an RDMA mode waits; its messages are Writes with immediate."""
    if form.limit:
        return []
    return [Point("event-server", "loopback", clients, (
        tcp("tcp-epoll", "hotspot", mode="epoll", clients=clients, size=64),
        verbs("write-epoll", "tcp-epoll", "hotspot", mode="epoll", clients=clients, size=64),
        through_memory("write-epoll-host", "tcp-epoll", "hotspot", mode="epoll", clients=clients, size=64)), PAIR_SECONDS)
        for clients in (1, 50)]


def fan(form):
    points = []
    for way in ("in", "out"):
        for peers in form.fan:
            keys = {"size": 64 * KI, "window": 16, "direction": "uni", "batch": 1, "fan": way,
                    "peers": peers}
            series = (tcp("tcp", "bandwidth", op="send", **keys),
                      verbs("send", "tcp", "bandwidth", op="send", **keys),
                      verbs("send-event", "tcp", "bandwidth", op="send", mode="event", **keys),
                      verbs("write", "tcp", "bandwidth", op="write", **keys))
            points.append(Point(f"fan-{way}", "loopback", peers, series, PAIR_SECONDS))
    return points


def idle(form):
    return [Point("idle", "loopback", count, (
        tcp("tcp", "idle", connections=count),
        verbs("verbs", "tcp", "idle", connections=count)), 4.2 + count / 4000)
        for count in form.idle]


def socket_series(test, program="bench-tcp", **keys):
    """A sockets program in each way of sockets.WAYS."""
    return tuple(Series(way, f"{program}:{way}", test, keys, None if way == "tcp" else "tcp") for way in SOCKET_WAYS)


def sockets(form):
    """What SOVIA reports of its sockets, too: files of 19 and 145 MB, and an empty RPC. A run of little
    time has what the targets need."""
    points = socket_points()
    if form.limit:
        needed = ("sockets-latency/loopback/64", f"sockets-bandwidth/loopback/{64 * KI}", "sockets-rate")
        return [point for point in points if key(point).startswith(needed)]
    return points


def socket_points():
    points = [Point("sockets-latency", "loopback", size,
                    socket_series("latency", op="send", mode=mode, size=size), PAIR_SECONDS)
              for size, mode in ((64, "block"), (4 * KI, "block"))]
    stream = {"op": "send", "direction": "uni", "batch": 1}
    points += [Point("sockets-bandwidth", "loopback", size,
                     socket_series("bandwidth", size=size, **stream), PAIR_SECONDS)
               for size in (4 * KI, 64 * KI, MI)]
    rate = socket_series("bandwidth", size=64, **stream)
    combined = {**rate[-1].keys, "combine": "on"}
    rate = (*rate, rate[0]._replace(name="tcp-combined", keys=combined),
            rate[-1]._replace(name="iwarp-combined", keys=combined))
    points.append(Point("sockets-rate", "loopback", 64, rate, PAIR_SECONDS))
    points += [*waits(stream), *many_connections()]
    points.append(Point("rpc", "loopback", 0, socket_series("rpc", "rpc", size=0), PAIR_SECONDS))
    return points + [Point("ftp", "loopback", size, socket_series("ftp", "ftp", size=size, to="/dev/null"), 0.4)
                     for size in (19 * MI, 145 * MI)]


def waits(stream):
    """A program that polls is any server."""
    points = []
    for mode in ("block", "poll", "epoll", "epoll-edge"):
        points += [Point("sockets-waits", "loopback", mode,
                         socket_series("latency", op="send", mode=mode, size=64), PAIR_SECONDS),
                   Point("sockets-waits-bandwidth", "loopback", mode,
                         socket_series("bandwidth", size=64 * KI, mode=mode, **stream), PAIR_SECONDS)]
    return points


def many_connections():
    return [Point("sockets-connect", "loopback", 1000, socket_series("connect", count=1000), 0.4),
            Point("sockets-hotspot", "loopback", 50, socket_series("hotspot", mode="epoll", clients=50, size=64), 0.2),
            Point("sockets-idle", "loopback", 1000, socket_series("idle", connections=1000), 4.5),
            *(Point("redis", "loopback", clients, socket_series("redis", "redis", clients=clients, requests=each_second), 1.5)
              for clients, each_second in ((1, 30000), (50, 150000))),
            Point("nginx", "loopback", 50, socket_series("nginx", "nginx", clients=50, size=KI), 1.2),
            Point("memcached", "loopback", 16, socket_series("memcached", "memcached", clients=16), 1.4),
            Point("pgbench", "loopback", "select", socket_series("pgbench", "pgbench", kind="select"), 3.5)]


def personas(test, ops, **keys):
    """Each op over iWARP, and in the roce persona: there a Send or Write completes when the peer has it."""
    made = []
    for op in ops:
        made += [verbs(op, None, test, op=op, **keys),
                 Series(f"{op}-roce", "verbs-roce", test, {"op": op, "by": "modify_qp", **keys}, op)]
    return tuple(made)


def acknowledged(size):
    """In the iwarp persona a completion does not wait for the peer: there is nothing to compare with."""
    return Series("send-done-roce", "verbs-roce", "latency",
                  {"op": "send-done", "by": "modify_qp", "mode": "spin", "size": size}, None)


def roce(form):
    points = []
    for size in form.roce:
        latencies = personas("latency", ("send", "write", "write-cq"), mode="spin", size=size)
        rates = personas("bandwidth", ("send", "write"), size=size, window=SMALL_WINDOW,
                         direction="uni", batch=1)
        points += [Point("roce-latency", "loopback", size, latencies, PAIR_SECONDS),
                   Point("roce-done", "loopback", size, (acknowledged(size),), PAIR_SECONDS),
                   Point("roce-rate", "loopback", size, rates, PAIR_SECONDS)]
    return points


def through_memory(name, reference, test, **keys):
    return Series(name, "verbs-host", test, keys, reference)


def host(form):
    """Two ends on one host as a user has them, one of each over TCP beside it, and what else shares memory. The size of a
    message and the number under way are the same; of UCX's bandwidth tests, whose window is their own, the size."""
    if form.limit:
        return []
    points = []
    for size in (4, KI, 64 * KI):
        points.append(Point("host-latency", "loopback", size, (
            *latency_series(size)[:2],
            through_memory("send-spin", "tcp-spin", "latency", op="send", mode="spin", size=size),
            through_memory("send-event", "tcp-block", "latency", op="send", mode="event", size=size),
            through_memory("write", "tcp-spin", "latency", op="write", mode="spin", size=size),
            verbs("send-over-tcp", "tcp-spin", "latency", op="send", mode="spin", size=size),
            ucx_memory("tag_lat", size, "tcp-spin"), ucx_memory("put_lat", size, "tcp-spin"),
            Series("libfabric-shm", "libfabric-shm", "latency", {"endpoint": "rdm", "size": size}, "tcp-spin")), PAIR_SECONDS))
    for size in (4 * KI, 64 * KI, MI):
        points.append(Point("host-bandwidth", "loopback", size,
                            moved_through_memory(size, WINDOW, ("send", "write", "read")), PAIR_SECONDS))
    return [*points, Point("host-rate", "loopback", 64,
                           moved_through_memory(64, SMALL_WINDOW, ("send", "write")), PAIR_SECONDS)]


def ucx_memory(test, size, reference):
    return Series(f"ucx-shm-{test}", "ucx-shm", test, {"size": size}, reference)


def moved_through_memory(size, window, ops):
    keys = {"size": size, "window": window, "direction": "uni", "batch": 1}
    return (tcp("tcp", "bandwidth", op="send", **keys),
            *(through_memory(op, "tcp", "bandwidth", op=op, **keys) for op in ops),
            verbs("send-over-tcp", "tcp", "bandwidth", op="send", **keys),
            ucx_memory("tag_bw", size, "tcp"), ucx_memory("put_bw", size, "tcp"))


def engines(form):
    """Several QPs between two processes, each with a batch of large Writes or Reads under way."""
    keys = {"streams": 8, "window": 16, "batch": 16, "direction": "uni"}
    points = []
    for size in form.engines:
        series = [tcp("tcp", "bandwidth", op="send", size=size, **keys)]
        for op in ("write", "read"):
            series += [verbs(op, "tcp", "bandwidth", op=op, size=size, **keys),
                       Series(f"{op}-roce", "verbs-roce", "bandwidth",
                              {"op": op, "by": "modify_qp", "size": size, **keys}, "tcp")]
        points.append(Point("engines", "loopback", size, tuple(series), PAIR_SECONDS))
    return points


def secured(name, test, **keys):
    """anywarp under TLS, held to plain TLS over TCP, whose ends sleep while there is nothing to do, as those of the -event series do."""
    return Series(name, "verbs-tls", test, keys, "tls-block")


def plain_tls(mode, test, **keys):
    return Series(f"tls-{mode}", "tls", test, {"mode": mode, **keys}, None)


def tls(form):
    """Whoever needs TLS compares with what it costs without RDMA; raw TCP stands beside it."""
    if form.limit:
        return []
    points = []
    for size in (4, 64):
        keys = {"op": "send", "size": size}
        points.append(Point("tls-latency", "loopback", size, (
            tcp("tcp-block", "latency", mode="block", **keys),
            *(plain_tls(mode, "latency", **keys) for mode in ("block", "epoll")),
            *(secured(f"send-{mode}", "latency", mode=mode, **keys) for mode in ("event", "spin"))), PAIR_SECONDS))
    for size in (64 * KI, MI):
        keys = {"size": size, "window": WINDOW, "direction": "uni", "batch": 1}
        points.append(Point("tls-bandwidth", "loopback", size, (
            tcp("tcp", "bandwidth", op="send", **keys),
            *(plain_tls(mode, "bandwidth", op="send", **keys) for mode in ("block", "epoll")),
            *(secured(f"{op}-event", "bandwidth", op=op, mode="event", **keys) for op in ("send", "write", "read"))), PAIR_SECONDS))
    return [*points, Point("tls-connect", "loopback", 100, (
        tcp("tcp", "connect", count=100), Series("tls-block", "tls", "connect", {"count": 100}, None),
        secured("verbs", "connect", count=100)), 0.5)]


def perftest(form):
    """perftest's programs poll. Their latency is held to that of TCP's recv as a program has it, which blocks."""
    if form.limit:
        return []
    raw = {"op": "send", "size": 4}
    latencies = (tcp("tcp-block", "latency", mode="block", **raw), tcp("tcp-spin", "latency", mode="spin", **raw),
                 *foreign("lat", "tcp-block", 4))
    return [Point("perftest", "loopback", MI, (bandwidth_series(MI, "uni", ops=())[0], *foreign("bw", "tcp", MI)), 0.4),
            Point("perftest-latency", "loopback", 4, latencies, 0.4)]


def foreign(kind, reference, size):
    return (Series(f"{op}_{kind}{suffix}", f"perftest{suffix}", f"ib_{op}_{kind}", {"size": size}, reference)
            for suffix in ("", "-host") for op in ("write", "send", "read"))


def veth(form):
    points = []
    for mtu in form.mtus:
        bed = f"veth-{mtu}"
        points += [Point("latency", bed, size, latency_series(size), PAIR_SECONDS)
                   for size in form.veth_latency]
        points += [Point("bandwidth", bed, size, one_way(size, ("send", "write", "read") if size == MI else ()), PAIR_SECONDS)
                   for size in form.veth_bandwidth]
    return points


def libfabric(endpoint, size):
    return Series(f"libfabric-{endpoint}", "libfabric", "latency",
                  {"endpoint": endpoint, "size": size}, "tcp-spin")


def ucx(test, size, reference):
    return Series(f"ucx-{test}", "ucx", test, {"size": size}, reference)


def others_latency(size):
    return (tcp("tcp-spin", "latency", op="send", mode="spin", size=size),
            verbs("send-spin", "tcp-spin", "latency", op="send", mode="spin", size=size),
            verbs("write", "tcp-spin", "latency", op="write", mode="spin", size=size),
            libfabric("msg", size), libfabric("rdm", size),
            ucx("tag_lat", size, "tcp-spin"), ucx("put_lat", size, "tcp-spin"))


def others_bandwidth(size):
    return (*bandwidth_series(size, "uni", ops=("send", "write")),
            ucx("tag_bw", size, "tcp"), ucx("put_bw", size, "tcp"))


def others(_):
    """Ping-pong at the large sizes, too: it is all that libfabric's packaged program does."""
    return ([Point("others-latency", "loopback", size, others_latency(size), 0.4)
             for size in (4, 64 * KI, MI)] +
            [Point("others-bandwidth", "loopback", size, others_bandwidth(size), 0.4)
             for size in (64 * KI, MI)])


MAKERS = (latency, worst, bandwidth, bidirectional, windows, rate, threads, connect, streams,
          hotspot, event_server, fan, idle, sockets, roce, host, tls, engines, perftest, others,
          veth)


def key(point):
    return f"{point.group}/{point.bed}/{point.x}"


def is_named(point, text):
    """Whether the key, or what follows one of its slashes, begins with the text."""
    return f"/{text}" in f"/{key(point)}"


def all_points(form_name, only=()):
    """Every point of that form, those of one bed together. only: texts of which one must name the
    point."""
    points = [point for make in MAKERS for point in make(FORMS[form_name])]
    wanted = [point for point in points if not only or any(is_named(point, text) for text in only)]
    return sorted(wanted, key=lambda point: BEDS.index(point.bed))
