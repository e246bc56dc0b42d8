#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""apps.py BUILD MODULES: the kernel's own users of RDMA, a file on NFS and a disk of NVMe over Fabrics, over TCP, siw and
anywarp.ko, in turn in one boot of a kernel, over a veth pair, from memory to memory; ANYWARP_MB is the size. What was written
is compared with what was read. Prints tables and decides nothing. './dev bench --kernel --apps' runs it."""

import contextlib
import json
import mmap
import os
import pathlib
import subprocess
import sys
import time

import rows  # it tells where the tests' modules are

import consumers
import ends
import kernel
import nfs
import nvme

MB = consumers.MB
SIZE = consumers.BULK
# A call of a program that copies a file; and one of 16 requests of 1 MiB to a disk, which are under way together.
FILE_PIECE, DISK_PIECE = MB, 16 * MB
NFS_VERSION = 4.2
RAM_DISK = pathlib.Path("/dev/ram0")
MODULES = ("rpcrdma", "nfsv4", "nfsd", "nvme-tcp", "nvme-rdma", "nvmet-tcp", "nvmet-rdma")
KINDS = tuple(kind for kind in rows.KINDS if kind.name in ("tcp", "siw", "anywarp.ko", "anywarp.ko crc=N"))

FILE_WRITE, FILE_READ = (rows.Row(f"NFS, file {verb}", "bandwidth", {}, "bandwidth") for verb in ("written", "read"))
DISK_WRITE, DISK_READ = (rows.Row(f"NVMe, 1 Mi {verb}", "bandwidth", {}, "bandwidth") for verb in ("written", "read"))
ONE_BY_ONE = rows.Row("NVMe, 4 Ki read, one by one", "latency", {"depth": 1}, "latency_mean")
QUEUED = rows.Row("NVMe, 4 Ki read, 32 under way", "rate", {"depth": 32}, "requests")
FILE_ROWS, DISK_ROWS = (FILE_WRITE, FILE_READ), (DISK_WRITE, DISK_READ, ONE_BY_ONE, QUEUED)


def transport(kind):
    return "rdma" if kind.link else "tcp"


def busy_seconds():
    """For which the machine's processor was busy."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *others = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def measure(crossed, work):
    """One run's JSON of work, which moves SIZE bytes over the link; crossed() is what went over that so far."""
    before, busy, begin = crossed(), busy_seconds(), time.monotonic()
    work()
    seconds, busy = time.monotonic() - begin, busy_seconds() - busy
    assert crossed() - before >= SIZE, "it went another way than over the link"
    return {"octets": SIZE, "octets_per_second": SIZE / seconds, "machine_seconds": busy}


@contextlib.contextmanager
def opened(path, flags):
    file = os.open(path, flags, 0o600)
    try:
        yield file
    finally:
        os.close(file)


class Data:
    """What is written, another each time, and where it is read to. Both lie on whole pages, as a disk wants them."""

    def __init__(self):
        self.written, self.read = mmap.mmap(-1, SIZE), mmap.mmap(-1, SIZE)

    def renew(self):
        self.written[:] = os.urandom(SIZE)

    def write_to(self, path, piece, flags=0):
        with opened(path, os.O_WRONLY | os.O_CREAT | flags) as file, memoryview(self.written) as view:
            for at in range(0, SIZE, piece):
                os.pwrite(file, view[at:at + piece], at)
            os.fsync(file)

    def read_from(self, path, piece, flags=0):
        with opened(path, os.O_RDONLY | flags) as file, memoryview(self.read) as view:
            for at in range(0, SIZE, piece):
                os.preadv(file, [view[at:at + piece]], at)

    def compare(self):
        """Nothing of what was read stays for the next time."""
        for at in range(0, SIZE, MB):
            assert self.read[at:at + MB] == self.written[at:at + MB], f"other bytes were read than written, from {at} on"
        self.read[:] = bytes(SIZE)


def measure_file(wire, client, data):
    """Gives its rows; the server's file is compared, and what the client, which knows nothing of it any more, reads."""
    path = nfs.MOUNT / "data"
    written = measure(wire.octets, lambda: data.write_to(path, FILE_PIECE))
    data.read_from(nfs.EXPORT / "data", FILE_PIECE)
    data.compare()
    yield FILE_WRITE, written
    client.remount()
    read = measure(wire.octets, lambda: data.read_from(path, FILE_PIECE))
    data.compare()
    yield FILE_READ, read


def measure_disk(wire, data, seconds):
    """Gives its rows; the RAM disk behind the target is compared, and what is read of it over the link. No cache is between."""
    written = measure(wire.octets, lambda: data.write_to(nvme.DISK, DISK_PIECE, os.O_DIRECT))
    data.read_from(RAM_DISK, DISK_PIECE, os.O_DIRECT)
    data.compare()
    yield DISK_WRITE, written
    read = measure(wire.octets, lambda: data.read_from(nvme.DISK, DISK_PIECE, os.O_DIRECT))
    data.compare()
    yield DISK_READ, read
    for row in (ONE_BY_ONE, QUEUED):
        yield row, read_at_random(row.keys["depth"], seconds)


def read_at_random(depth, seconds):
    told = ends.run(["fio", "--name=reads", f"--filename={nvme.DISK}", "--rw=randread", "--bs=4k", f"--size={SIZE}", "--direct=1",
                     "--ioengine=libaio", f"--iodepth={depth}", "--time_based", f"--runtime={round(seconds * 1000)}ms", "--thread",
                     "--readonly", "--output-format=json"])
    reads = json.loads(told)["jobs"][0]["read"]
    return {"usec": {"mean": reads["lat_ns"]["mean"] / 1000}, "requests_per_second": reads["iops"]}


class Applications(rows.Bench):
    def __init__(self, options):
        super().__init__(options, KINDS, (*FILE_ROWS, *DISK_ROWS))
        self.data = Data()

    def run(self):
        self.load_crc()
        for name in MODULES:
            consumers.load(kernel.Kernel, name)
        consumers.load(kernel.Kernel, "brd", "rd_nr=1", f"rd_size={SIZE // 1024}")
        consumers.mount_configfs()
        self.data.write_to(RAM_DISK, DISK_PIECE, os.O_DIRECT)  # its memory is allocated when it is written first
        super().run()

    def measure_kind(self, mtu, kind):
        with contextlib.ExitStack() as stack:
            wire = consumers.Wire(kind.link, mtu)
            stack.callback(wire.close)
            for of_application, measure_rows in ((FILE_ROWS, self.measure_nfs), (DISK_ROWS, self.measure_nvme)):
                left = [row for row in of_application if row in self.rows]
                if not left:
                    continue
                self.data.renew()
                try:
                    for row, result in measure_rows(wire, transport(kind)):
                        self.note(mtu, kind, row, result)
                        left = [each for each in left if each is not row]
                except (AssertionError, OSError, subprocess.SubprocessError) as failure:
                    for row in left:
                        self.note(mtu, kind, row, {"failure": str(failure)})

    def measure_nfs(self, wire, over):
        with contextlib.ExitStack() as stack:
            server = nfs.Server(wire.into, over)
            stack.callback(server.close)
            server.end_grace()
            client = nfs.Client(wire.into, wire.addresses[1], NFS_VERSION, over)
            client.mount()
            stack.callback(client.unmount)
            yield from measure_file(wire, client, self.data)

    def measure_nvme(self, wire, over):
        with contextlib.ExitStack() as stack:
            target = nvme.Target(wire.addresses[1], over)
            stack.callback(target.close)
            host = nvme.Host(wire, over)
            host.connect()
            stack.callback(host.disconnect)
            yield from measure_disk(wire, self.data, self.options.seconds)


def main(argv):
    bench = Applications(rows.parse(argv, KINDS, __doc__))
    bench.run()
    rows.print_tables(bench, [("Bandwidth, MB/s", "bandwidth", rows.value_of, 1e-6),
                              ("Processor, both ends, s/GB", "bandwidth", rows.busy_of, 1),
                              ("Latency, µs", "latency", rows.value_of, 1),
                              ("Requests a second", "rate", rows.value_of, 1)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
