# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A parallel file system's store: Ceph as Debian has it, one monitor and two OSDs in memory, with rados bench writing objects and
reading them back, which compares them. Its messenger over TCP (async+posix), as it is and under libanywarp-sockets.so, and over
verbs (async+rdma) in the roce persona, since it connects its QPs itself."""

import os
import re
import uuid

import app_mpi
import application
import pair
import program

CONF = """[global]
fsid = {fsid}
mon_host = v1:{address}:{port}
public_addr = {address}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = {messenger}
ms_bind_msgr2 = false
ms_bind_port_min = {first}
ms_bind_port_max = {last}
ms_async_rdma_device_name = anywarp0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 2147483648
run_dir = {folder}
log_file = {folder}/$name.log
admin_socket = {folder}/$name.asok
mon_data = {folder}/mon
osd_data = {folder}/osd$id
keyring = {folder}/keyring
"""
OSDS, PORTS = 2, 20
UNDER_WAY = 8
# A client of Ceph asks now and then before it knows the cluster's fsid, and is refused.
TRIES = 6
COMMAND_SECONDS = 30


class Ceph(application.Application):
    packages = {"ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "ceph": "ceph-common", "rados": "ceph-common"}
    prefix, messenger = [], "async+posix"

    def measure(self, scene, keys, seconds):
        self.start_monitor(scene)
        for number in range(OSDS):
            self.start_osd(scene, number)
        application.wait_until(lambda: f"{OSDS} osds: {OSDS} up" in self.ask(scene, ["ceph", "-s"]), "OSD that is up")
        self.ask(scene, ["ceph", "osd", "pool", "create", "bench", "8"])
        bench, time = [*self.prefix, "rados", "-c", scene.path("conf"), "-p", "bench", "bench"], str(max(2, round(2 * seconds)))
        wrote = scene.load([*bench, time, "write", "-b", str(keys["size"]), "-t", str(UNDER_WAY), "--no-cleanup"])
        cpu = scene.cpu_seconds
        read = scene.load([*bench, time, "seq", "-t", str(UNDER_WAY)])
        scene.cpu_seconds += cpu
        return self.numbers(wrote, read, keys["size"])

    @staticmethod
    def numbers(wrote, read, size):
        counts = [re.search(rf"Total {what} made: +(\d+)", said) for what, said in (("writes", wrote), ("reads", read))]
        rates = [re.search(r"^Bandwidth \(MB/sec\): +([\d.]+)", said, re.M) for said in (wrote, read)]
        if None in counts + rates or not int(counts[1][1]):
            raise pair.Failure(f"rados bench printed no rate: {application.last_lines(read)}")
        operations = sum(int(each[1]) for each in counts)
        # Its MB are 2^20 bytes. What it reads it compares with what it wrote, and fails otherwise.
        return {"octets_per_second": float(rates[0][1]) * 2 ** 20, "read_octets_per_second": float(rates[1][1]) * 2 ** 20,
                "octets": operations * size, "operations": operations, "checked": f"{counts[1][1]} objects"}

    def start_monitor(self, scene):
        fsid, port, first = str(uuid.uuid4()), scene.port(), scene.port()
        conf = scene.write("conf", CONF.format(fsid=fsid, address=scene.bed.address, port=port, folder=scene.folder,
                                               messenger=self.messenger, first=first, last=first + PORTS))
        scene.write("keyring", "")
        os.mkdir(scene.path("mon"))
        scene.client(["monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"v1:{scene.bed.address}:{port}", scene.path("map")])
        monitor = [*self.prefix, "ceph-mon", "-i", "a", "-c", conf]
        scene.client([*monitor, "--mkfs", "--monmap", scene.path("map"), "--keyring", scene.path("keyring")])
        scene.server([*monitor, "-f"], port)

    def start_osd(self, scene, number):
        os.mkdir(scene.path(f"osd{number}"))
        name = str(uuid.uuid4())
        self.ask(scene, ["ceph", "osd", "new", name])
        osd = [*self.prefix, "ceph-osd", "-i", str(number), "-c", scene.path("conf")]
        scene.client([*osd, "--mkfs", "--osd-uuid", name])
        for _ in range(TRIES):
            started = scene.start([*osd, "-f"])
            try:
                started.wait_until(lambda: self.is_up(scene, number), "OSD that is up", COMMAND_SECONDS)
                return
            except program.Trouble as trouble:
                last = trouble
                started.kill()
        raise pair.Failure(f"ceph-osd {last}: {application.last_lines(started.output())}")

    def is_up(self, scene, number):
        return re.search(rf"^osd\.{number} up ", self.ask(scene, ["ceph", "osd", "dump"]), re.M)

    def ask(self, scene, command):
        """A command to the monitor."""
        for number in range(TRIES):
            try:
                return scene.client([*self.prefix, command[0], "-c", scene.path("conf"), *command[1:]], COMMAND_SECONDS)
            except pair.Failure:
                if number == TRIES - 1:
                    raise


class CephOverVerbs(Ceph):
    messenger = "async+rdma"

    def __init__(self, libraries):
        super().__init__(application.Way("verbs-roce", dict(os.environ), None))
        self.prefix = [app_mpi.command_of(libraries), "run", "--persona", "roce", "--"]
