# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The application study, 'anywarp bench --apps': programs that people know, each as it is over TCP, under libanywarp-sockets.so
left to TCP (pass-through), by a pair of the kernel's (auto), and over iWARP; where it applies one-sided, by verbs, and by MPI's
UCX. Its points, as points.py has those of the bench."""

import collections

import app_calls
import app_ceph
import app_engine
import app_monitor
import app_mpi
import app_pipeline
import application
import points
import sockets
from points import Group, Point, Series
from values import KI, MI

GROUPS = {
    "app-ftp": Group("Files by FTP, vsftpd to tnftp, from memory to memory", "bytes", ("bandwidth", "cpu_per_gb")),
    "app-rpc": Group("ONC RPC by libtirpc: so much there and back in a call", "bytes",
                     ("latency_whole", "latency_p99_whole", "cpu_per_operation")),
    "app-grpc-unary": Group("gRPC (Python), unary: so much there and back in a call", "bytes",
                            ("latency_whole", "latency_p99_whole", "cpu_per_operation")),
    "app-grpc-stream": Group("gRPC (Python), a stream of messages from the server", "bytes", ("bandwidth", "cpu_per_gb")),
    "app-gmond": Group("Cluster monitor: clients that ask one gmond, 50 KB an answer", "clients",
                       ("latency_whole", "latency_p99_whole", "requests", "cpu_per_operation")),
    "app-gmetad": Group("Cluster monitor: clients that ask gmetad, which asks gmond", "clients",
                        ("latency_whole", "requests", "cpu_per_operation")),
    "app-redis": Group("redis: GET of 64 bytes, redis-benchmark", "clients", ("requests", "latency_whole", "cpu_per_operation")),
    "app-nginx": Group("nginx and wrk, 16 connections: a file of so many bytes", "bytes",
                       ("requests", "cpu_per_operation")),
    "app-memcached": Group("memcached and memcaslap: 90 % get, 10 % set of 1 KiB", "clients", ("requests", "cpu_per_operation")),
    "app-pgbench": Group("PostgreSQL and pgbench, 8 clients, prepared statements", "transactions",
                         ("requests", "latency_mean", "cpu_per_operation")),
    "app-mpi-latency": Group("Open MPI, two ranks: half a round trip", "bytes", ("latency",)),
    "app-mpi-bandwidth": Group("Open MPI, two ranks: bandwidth, 16 under way", "bytes", ("bandwidth",)),
    "app-mpi-allreduce": Group("Open MPI, two ranks: MPI_Allreduce of doubles", "bytes", ("latency_whole",)),
    "app-mpi-sort": Group("Open MPI, two ranks: integer sort, a kernel as NAS IS", "keys a rank", ("keys", "cpu_per_operation")),
    "app-tiles": Group("Tiled MPI-IO: overlapping tiles of a 2-D dataset, written and read collectively", "tile's edge",
                       ("bandwidth", "cpu_per_gb")),
    "app-ceph": Group("Ceph, one monitor and two OSDs in memory, rados bench: objects of so many bytes, written and read back",
                      "bytes", ("bandwidth", "bandwidth_read", "cpu_per_gb")),
    "app-engine": Group("Key-value cache, NIXL: 16 blocks of so many bytes in a batch, written into the peer's memory, and read from it",
                        "bytes", ("bandwidth", "bandwidth_read", "cpu_per_gb")),
    "app-pipeline": Group("Filter pipeline read, transform, view: updates of 4 MiB by the size of their blocks", "bytes",
                          ("updates", "partial", "cpu_per_gb")),
    "app-pipeline-bound": Group("Filter pipeline: updates of 4 MiB a second while 90 % of the partial updates take no longer than "
                                "so many µs, 0 where no size of blocks does", "µs", ("updates",)),
    "app-balance": Group("Filter pipeline, demand-driven: one of two filters becomes 8 times slower; by the size of the blocks",
                         "bytes", ("reaction", "work_seconds", "cpu_per_gb")),
}
points.GROUPS.update(GROUPS)

# What each length of a run takes; limit is the seconds after which it had better be over.
Form = collections.namedtuple("Form", "rounds seconds limit files rpc grpc monitor redis nginx memcached sql mpi keys tiles ceph "
                                      "engine blocks bounds beds")

FORMS = {
    "apps": Form(5, 1.0, 55 * 60, (MI, 16 * MI, 145 * MI, KI * MI), (0, KI, 8 * KI, 64 * KI), (64, 64 * KI), (1, 8, 64), (1, 50),
                 (KI, MI), (1, 16), ("select", "tpc-b"), (8, 64 * KI, MI), (MI,), (256, 1024), (64 * KI,), (64 * KI, MI), (4 * KI, 16 * KI, 64 * KI, 256 * KI),
                 (1000, 4000, 16000), ("veth-1500", "veth-9000", "wan")),
    "apps-short": Form(3, 0.5, 8 * 60, (MI, 145 * MI), (0, 64 * KI), (64,), (1, 64), (50,), (KI,), (16,), ("select",), (8, MI),
                       (MI // 4,), (1024,), (), (), (16 * KI, 256 * KI), (), ("veth-1500", "wan")),
}
BEDS = ("loopback", "veth-1500", "veth-9000", "wan")
WAYS = ("tcp", "pass-through", "auto", "iwarp")
OWN_WAYS = ("one-sided", "verbs")
# By the program of a series: what a run takes beyond the time it measures, roughly.
RUN_SECONDS = {"ftp": 0.6, "rpc": 0.3, "grpc": 1.2, "gmond": 0.8, "gmetad": 2, "redis": 0.6, "nginx": 0.8, "memcached": 0.8,
               "pgbench": 3, "mpi": 1.5, "ceph": 14, "engine": 4, "pipeline": 0.5}


def ways(app, test, more=(), **keys):
    """A series of each way, the same keys for all."""
    return tuple(Series(name, f"{app}:{name}", test, keys, None if name == "tcp" else "tcp") for name in (*WAYS, *more))


def point(group, bed, x, series):
    """Between network namespaces "auto" is TCP, as pass-through shows it."""
    if bed != "loopback":
        series = tuple(each for each in series if each.name != "auto")
    return Point(f"app-{group}", bed, x, series, RUN_SECONDS[series[0].program.partition(":")[0]])


def files(bed, form):
    return [point("ftp", bed, size, ways("ftp", "ftp", size=size)) for size in form.files]


def calls(bed, form):
    return ([point("rpc", bed, size, ways("rpc", "rpc", size=size)) for size in form.rpc] +
            [point(f"grpc-{kind}", bed, size, ways("grpc", "grpc", kind=kind, size=size))
             for kind, sizes in (("unary", form.grpc), ("stream", (64 * KI,))) for size in sizes])


def monitor(bed, form):
    made = [point("gmond", bed, clients, ways("gmond", "monitor", clients=clients)) for clients in form.monitor]
    return made + [point("gmetad", bed, 8, ways("gmetad", "monitor", clients=8))]


def servers(bed, form):
    rates = {1: 8000, 50: 40000}  # requests for each second that is to be measured
    return ([point("redis", bed, clients, ways("redis", "redis", clients=clients, requests=rates[clients]))
             for clients in form.redis] +
            [point("nginx", bed, size, ways("nginx", "nginx", clients=16, size=size)) for size in form.nginx] +
            [point("memcached", bed, clients, ways("memcached", "memcached", clients=clients)) for clients in form.memcached] +
            [point("pgbench", bed, kind, ways("pgbench", "pgbench", kind=kind)) for kind in form.sql])


def mpi(bed, form):
    """mpirun and its ranks have to reach each other: on one host, without namespaces."""
    made = [point(f"mpi-{kind}", bed, size, ways("mpi", kind, ("ucx-roce",), kind=kind, size=size))
            for kind in ("latency", "bandwidth", "allreduce") for size in form.mpi if kind != "bandwidth" or size >= KI]
    made += [point("mpi-sort", bed, keys, ways("mpi", "sort", ("ucx-roce",), kind="sort", size=keys)) for keys in form.keys]
    return made + [point("tiles", bed, edge, ways("mpi", "tiles", ("ucx-roce",), kind="tiles", size=edge)) for edge in form.tiles]


def store(bed, form):
    return [point("ceph", bed, size, ways("ceph", "ceph", ("verbs-roce",), size=size)) for size in form.ceph]


def engine(bed, form):
    return [point("engine", bed, size, ways("engine", "engine", ("ucx-roce",), size=size)) for size in form.engine]


def pipeline(bed, form):
    return ([point("pipeline", bed, size, ways("pipeline", "updates", OWN_WAYS, block=size)) for size in form.blocks] +
            [point("pipeline-bound", bed, bound, ways("pipeline", "bound", OWN_WAYS, bound=bound)) for bound in form.bounds] +
            [point("balance", bed, size, ways("pipeline", "balance", OWN_WAYS, work=size)) for size in form.blocks[:3]])


MAKERS = (files, calls, monitor, servers, mpi, store, engine, pipeline)
# What a network of its own is asked for: one size or count of most.
OVER_VETH = {"files": (16 * MI,), "rpc": (0, 64 * KI), "grpc": (64,), "monitor": (8,), "redis": (50,), "nginx": (KI, MI),
             "memcached": (16,), "sql": ("select",), "mpi": (), "keys": (), "tiles": (), "ceph": (), "engine": (), "blocks": (16 * KI, 256 * KI),
             "bounds": ()}
# A link of 10 ms that loses 1 % carries some MB a second.
OVER_WAN = {**OVER_VETH, "files": (4 * MI,), "monitor": (8,), "nginx": (KI,), "sql": (), "blocks": (16 * KI,)}
SHORT_OVER_VETH = {**OVER_VETH, "rpc": (0,), "grpc": (), "nginx": (KI,), "memcached": (), "sql": (), "blocks": (64 * KI,)}
SHORT_OVER_WAN = {**SHORT_OVER_VETH, "files": (MI,), "monitor": (), "nginx": (), "blocks": ()}
LESS = {"apps": {"veth": OVER_VETH, "wan": OVER_WAN}, "apps-short": {"veth": SHORT_OVER_VETH, "wan": SHORT_OVER_WAN}}


def points_of(form_name):
    form = FORMS[form_name]
    made = [each for make in MAKERS for each in make("loopback", form)]
    for bed in form.beds:
        less = form._replace(**LESS[form_name][bed.partition("-")[0]])
        for make in (files, calls, monitor, servers, pipeline):
            made += [each for each in make(bed, less) if wanted_over(form_name, bed, each)]
    return made


def wanted_over(form_name, bed, each):
    """Not all groups are asked for over each network."""
    if each.group in ("app-gmetad", "app-grpc-stream"):
        return form_name == "apps" and bed == "veth-1500"
    if each.group in ("app-gmond", "app-memcached", "app-pgbench", "app-grpc-unary"):
        return form_name == "apps" and bed != "veth-9000"
    return each.group != "app-balance" or bed == "veth-1500"


def all_points(form_name, only=()):
    """As points.all_points has them: those of one bed together."""
    wanted = [each for each in points_of(form_name) if not only or any(points.is_named(each, text) for text in only)]
    return sorted(wanted, key=lambda each: BEDS.index(each.bed))


def programs(workers, libraries):
    """By the name that a series has for them."""
    made, python, engine_python = sockets.programs(workers, libraries), application.python_with("grpc"), application.python_with("nixl")
    for way in sockets.all_ways(libraries):
        made.update({
            f"grpc:{way.name}": app_calls.Grpc(way, python), f"gmond:{way.name}": app_monitor.Monitor(way),
            f"gmetad:{way.name}": app_monitor.Gmetad(way), f"ceph:{way.name}": app_ceph.Ceph(way),
            f"engine:{way.name}": app_engine.Engine(way, engine_python), f"mpi:{way.name}": app_mpi.OverTcp(way, workers),
            f"pipeline:{way.name}": app_pipeline.Pipeline(way, workers, "tcp")})
    made["ceph:verbs-roce"] = app_ceph.CephOverVerbs(libraries)
    made["engine:ucx-roce"] = app_engine.OverVerbs(libraries, engine_python)
    made["mpi:ucx-roce"] = app_mpi.OverUcx(workers, libraries)
    made.update({f"pipeline:{name}": app_pipeline.Pipeline(app_pipeline.own_way(name, libraries), workers, name)
                 for name in OWN_WAYS})
    return made


# Of the list: what no run has, and why.
NOT_IN_IT = (
    ("NFS over RDMA and NVMe over Fabrics", "they need the kernel module: './dev bench --kernel --apps' measures them"),
    ("Valkey over RDMA", "no package of Debian 12, and no binaries elsewhere"),
    ("Open MPI over veth pairs and the WAN", "mpirun and its ranks have to reach each other, so they are in one network namespace"),
)
