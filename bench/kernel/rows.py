#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rows.py BUILD MODULES: anywarp.ko beside TCP and siw, in turn in one boot of a kernel under User Mode Linux, or in a
virtual machine, over a veth pair. BUILD is the build of user space, MODULES the directories of the modules. Prints tables and decides
nothing. './dev bench --kernel' runs it."""

import argparse
import collections
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "driver"), str(ROOT / "tests" / "kernel"), str(ROOT / "tools" / "lib")]
sys.dont_write_bytecode = True

import beds  # noqa: E402
import ends  # noqa: E402
import pair  # noqa: E402
import points  # noqa: E402
import stats  # noqa: E402
import values  # noqa: E402
import workers  # noqa: E402

# In the order in which they are loaded, where the kernel has not done so. libcrc32c takes the fastest CRC32c that is there
# by then.
CRC_MODULES = ("crc32c-x86", "libcrc32c")
DISTRIBUTION = "/usr/lib/x86_64-linux-gnu"
# One processor has both ends, so whoever polls keeps the other from it: both sleep.
WINDOW = 64
SIZES = (64, 4 * values.KI, 64 * values.KI, values.MI)
LATENCY_SIZES = (4, 4 * values.KI)
GIGA = 1e9

# link: the type of the devices, or None; options: the module's; mpa: what the libraries of user space ask for.
Kind = collections.namedtuple("Kind", "name link options mpa", defaults=(None, (), ""))
KINDS = (Kind("tcp"), Kind("siw", "siw"), Kind("anywarp.ko", "anywarp"),
         Kind("anywarp.ko crc=N", "anywarp", ("crc=N",)),
         Kind("anywarp.ko markers=Y", "anywarp", ("markers=Y",)),
         Kind("libraries"))
TCP, SIW, USER = KINDS[0], KINDS[1], KINDS[-1]
# name: what the run of a kind is; value and better: of values.VALUES.
Row = collections.namedtuple("Row", "name test keys value")


def all_rows():
    latencies = [Row(f"{op}, {values.octets(size)}", "latency", {"op": op, "mode": "event", "size": size}, "latency")
                 for op in ("send", "read") for size in LATENCY_SIZES]
    bandwidths = [Row(f"{op}, {values.octets(size)}", "bandwidth",
                      {"op": op, "mode": "event", "size": size, "window": WINDOW}, "bandwidth")
                  for op in ("write", "send", "read") for size in SIZES]
    return latencies + bandwidths


def of_tcp(row):
    """TCP knows one operation, and a Read is there and back as its ping-pong is."""
    return row._replace(keys={**row.keys, "op": "send", "mode": "block"})


class Programs:
    def __init__(self, build):
        folder = f"{build}/bench"
        self.tcp = workers.Worker("tcp", folder, "")
        self.kernel = workers.Worker("verbs", folder, DISTRIBUTION)
        self.user = workers.Worker("verbs", folder, f"{build}/lib")

    def of(self, kind):
        if kind is TCP:
            return self.tcp
        return self.kernel if kind.link else self.user


class Modules:
    def __init__(self, directories):
        self.directories = directories

    def load(self, name, *options):
        path = next(path for directory in self.directories
                    if (path := pathlib.Path(directory, f"{name}.ko")).exists())
        subprocess.run(["insmod", path, *options], check=True)

    @staticmethod
    def unload(name):
        subprocess.run(["rmmod", name], check=True)


class Bench:
    """Measures kinds in turn; measure_kind(mtu, kind), while the kind's module is there, tells of its rows by note()."""

    def __init__(self, options, kinds, rows):
        self.options = options
        self.modules = Modules(options.modules.split(":"))
        self.rows = [row for row in rows if is_wanted(f"{row.test} {row.name}", options.only)]
        self.kinds = [kind for kind in kinds if kind.name in options.kinds] if options.kinds else list(kinds)
        self.found = collections.defaultdict(list)  # by mtu, row's test and name, kind's name: one run's JSON a round

    def load_crc(self):
        if not pathlib.Path("/sys/module/libcrc32c").exists():
            for name in CRC_MODULES:
                self.modules.load(name)

    def run(self):
        self.load_crc()
        for mtu in self.options.mtus:
            for number in range(self.options.rounds):
                for kind in self.kinds if number % 2 == 0 else self.kinds[::-1]:
                    self.run_kind(mtu, kind)

    def run_kind(self, mtu, kind):
        if kind.link:
            self.modules.load(kind.link, *kind.options)
        self.measure_kind(mtu, kind)
        if kind.link:
            self.modules.unload(kind.link)

    def note(self, mtu, kind, row, result):
        self.found[mtu, row.test, row.name, kind.name].append(result)


class Verbs(Bench):
    """The programs of anywarp bench."""

    def __init__(self, options):
        super().__init__(options, KINDS, all_rows())
        self.build = options.build
        self.programs = Programs(options.build)

    def measure_kind(self, mtu, kind):
        bed = ends.Bed((ends.KERNEL if kind.link else ends.USER,) * 2, kind.link, self.build)
        bed.at_mtu(mtu)
        try:
            for row in self.rows:
                self.note(mtu, kind, row, self.run_row(kind, row, bed))
        finally:
            bed.close()

    def run_row(self, kind, row, bed):
        ours = of_tcp(row) if kind is TCP else row
        server, client = bed.ends
        where = beds.Bed("veth", server.address, server.address6, server.into, client.into)
        series = points.Series(kind.name, "", ours.test, ours.keys, None)
        os.environ["ANYWARP_MPA"] = kind.mpa
        try:
            return self.programs.of(kind).run(where, series, self.options.seconds)
        except pair.Failure as failure:
            return {"failure": str(failure)}


def is_wanted(name, only):
    return not only or any(text in name for text in only)


def value_of(row, run):
    return None if "failure" in run else values.take(row.value, run)


def busy_of(row, run):
    """Seconds of the machine's processor for a GB, or for a million messages where they are small."""
    if row.test != "bandwidth" or "failure" in run:
        return None
    return run["machine_seconds"] * GIGA / run["octets"]


def cell(taken, reference, scale):
    """The median of the rounds, and the median of the ratios to a reference's run of the same round."""
    known = [each for each in taken if each is not None]
    if not known:
        return "failed"
    text = f"{stats.summary(known)['median'] * scale:.4g}"
    ratios = stats.paired_ratios(taken, reference) if reference else []
    if ratios:
        found = stats.summary(ratios)
        text += f" ({found['median']:.2f}; {found['min']:.2f}-{found['max']:.2f})"
    return text


def table(bench, mtu, title, test, take, scale):
    """title: what a cell is. In brackets the ratio to TCP, and its least and most."""
    names = [kind.name for kind in bench.kinds]
    lines = [f"{title}, MTU {mtu}", "", "| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in bench.rows:
        if row.test != test:
            continue
        taken = {name: [take(row, run) for run in bench.found[mtu, row.test, row.name, name]] for name in names}
        cells = [cell(taken[name], taken.get(TCP.name) if name != TCP.name else None, scale) for name in names]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return lines if len(lines) > 4 else []


def failures(bench):
    return [f"{' '.join(map(str, key))}: {run['failure']}" for key, runs in bench.found.items() for run in runs
            if "failure" in run]


def parse(argv, kinds, about):
    parser = argparse.ArgumentParser(prog="dev bench --kernel", description=about)
    parser.add_argument("build")
    parser.add_argument("modules")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run")
    parser.add_argument("--only", action="append", default=[], help="rows whose name has this in it")
    parser.add_argument("--kind", dest="kinds", action="append", default=[], choices=[kind.name for kind in kinds])
    parser.add_argument("--mtu", dest="mtus", type=int, action="append", default=[])
    parser.add_argument("--check", action="store_true", help="look at the arguments, and end")
    options = parser.parse_args(argv)
    if options.check:
        sys.exit()
    options.mtus = options.mtus or [1500, 9000]
    return options


def print_tables(bench, tables):
    """tables: what table() takes behind the MTU, each."""
    lines = []
    for mtu in bench.options.mtus:
        for title, *how in tables:
            lines += [*table(bench, mtu, title, *how), ""]
    print("\n".join([*lines, *failures(bench)]))


def main(argv):
    bench = Verbs(parse(argv, KINDS, __doc__))
    bench.run()
    print_tables(bench, [("Latency, both ends asleep, µs", "latency", value_of, 1),
                         ("Bandwidth, MB/s", "bandwidth", value_of, 1e-6),
                         ("Processor, both ends, s/GB", "bandwidth", busy_of, 1)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
