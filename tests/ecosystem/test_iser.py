# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""iSER: Debian's tgt serves a disk to Debian's libiscsi. The same disk over plain iSCSI says what is
tgt's own: over iSER nothing else may fail but what is libiscsi's own there."""

import filecmp
import os
import random
import re
import signal
import subprocess

import pytest

import scene as scenes

pytestmark = pytest.mark.program("iSER: tgt with libiscsi (iscsi-test-cu, iscsi-perf, 1 GB copied)")

INITIATOR, OTHER = "iqn.2026-01.example:initiator", "iqn.2026-01.example:other"
COPY_OCTETS = 2**30
# A command that takes over a second is libiscsi's end over iSER, and WriteSame10 may write all of it by blocks.
DISK_OCTETS = 2**23
# Those that tgt implements, and that libiscsi 1.19 survives over iSER. What it does not: ExtendedCopy, which writes
# 1 MiB at once, twice what tgt's iSER takes; Async, which has 1000 commands under way where libiscsi has 256
# descriptors; further sessions within a test (ProutReserve, the rest of Reserve6), whose lists of descriptors it
# never initialises.
SUITES = ("Inquiry", "Mandatory", "ModeSense6", "OrWrite", "Prefetch10", "PrinReadKeys", "ProutRegister",
          "Read6", *(f"Read10.{each}" for each in ("Simple", "BeyondEol", "ZeroBlocks", "ReadProtect", "DpoFua")),
          "Read12", "Read16", "ReadCapacity10", "ReadCapacity16", "ReportSupportedOpcodes",
          "Reserve6.Simple", "Reserve6.2Initiators", "TestUnitReady", "Unmap", "Verify10", "Verify16",
          *(f"Write10.{each}" for each in ("Simple", "BeyondEol", "ZeroBlocks", "WriteProtect", "DpoFua")),
          "Write12", "Write16", "WriteSame10", "WriteVerify10", "WriteVerify16")
# Over iSER it takes what was asked for as the size of what came; these look at that: Inquiry's AllocLength and
# BlockLimits, ModeSense6's Residuals. (run, passed, failed)
OVER_ISER = {"Inquiry": ("7", "5", "2"), "ModeSense6": ("5", "4", "1")}
# libiscsi frees a connection that its thread for rdma_cm's events may still be about to touch: its iSER never
# disconnects, as it leaves iscsi_context.fd at -1. With one processor, which is not taken from that thread, it is
# long past when the other one runs.
FIFO = f"taskset -c {min(os.sched_getaffinity(0))} chrt -f 1 "


class Target:
    """tgtd with a disk over iSER and one over TCP. Whoever asks it to end by a signal waits for ever."""

    def __init__(self, scene):
        scenes.need("tgtd", "tgtadm", "iscsi-inq")
        self.scene = scene
        self.env = {"TGT_IPC_SOCKET": scene.folder / "ipc"}
        self.ports = {"iser": scene.port(), "iscsi": scene.port()}
        self.process = scene.server(
            ["tgtd", "-f", "-C", "7", "--iser", f"port={self.ports['iser']}", "--iscsi",
             f"portal={scene.address}:{self.ports['iscsi']}"], self.ports["iscsi"], **self.env)
        self.disks = {kind: self.disk(kind, tid) for tid, kind in enumerate(self.ports, 1)}

    def admin(self, kind, line):
        self.scene.run(f"tgtadm -C 7 --lld {kind} --op {line}", plain=True, **self.env)

    def disk(self, kind, tid, octets=DISK_OCTETS):
        path = self.scene.folder / f"{kind}.disk"
        with open(path, "wb") as file:
            file.truncate(octets)
        name = f"iqn.2026-01.example:{kind}"
        self.admin(kind, f"new --mode target --tid {tid} -T {name}")
        self.admin(kind, f"new --mode logicalunit --tid {tid} --lun 1 -b {path}")
        self.admin(kind, f"bind --mode target --tid {tid} -I ALL")
        for name in (INITIATOR, OTHER):
            self.admin(kind, f"bind --mode target --tid {tid} -Q {name}")
        return path

    def url(self, kind):
        return f"{kind}://{self.scene.address}:{self.ports[kind]}/iqn.2026-01.example:{kind}/1"


@pytest.fixture
def target(scene):
    made = Target(scene)
    yield made
    os.kill(made.process.pid, signal.SIGKILL)


@pytest.mark.reports("leak")
def test_inquiry_and_capacity(scene, target):
    assert "VIRTUAL-DISK" in scene.run(f"iscsi-inq -i {INITIATOR} {target.url('iser')}", far=True)
    printed = scene.run(f"iscsi-readcapacity16 -i {INITIATOR} {target.url('iser')}", far=True)
    assert f"Total size:{DISK_OCTETS}" in printed
    scene.carried(connections=2)


def run_suite(scene, line):
    """Its status is 1 where a test failed."""
    started = scene.client(line)
    assert started.wait_exit(scenes.SECONDS_MAX) in (0, 1), line
    return started.output()


@pytest.mark.reports("leak")
def test_iscsi_test_cu(scene, target):
    if subprocess.run([*FIFO.split(), "true"], check=False, capture_output=True).returncode:
        pytest.skip("no SCHED_FIFO is allowed here (chrt), and without it libiscsi may crash")
    results = {}
    for kind in ("iscsi", "iser"):
        for suite in SUITES:
            line = f"{FIFO}iscsi-test-cu -d -i {INITIATOR} -I {OTHER} -t SCSI.{suite} {target.url(kind)}"
            printed = run_suite(scene, line)
            summary = re.search(r"tests +\d+ +(\d+) +(\d+) +(\d+)", printed)
            assert summary and int(summary.group(1)) > 0, line
            results[kind, suite] = summary.groups()
    wanted = {suite: OVER_ISER.get(suite, results["iscsi", suite]) for suite in SUITES}
    different = [(suite, wanted[suite], results["iser", suite])
                 for suite in SUITES if wanted[suite] != results["iser", suite]]
    assert not different
    scene.carried(connections=len(SUITES))


@pytest.mark.reports("leak")
def test_iscsi_perf(scene, target):
    printed = scene.run(f"iscsi-perf -i {INITIATOR} -b 64 -m 8 -t 2 -x 1 {target.url('iser')}", far=True)
    assert re.search(r"iops average [1-9]", printed) and "finished" in printed
    scene.carried(octets=64 * 512 * 100)


def random_file(path, octets):
    """A megabyte of its own for each megabyte: a block in the wrong place is seen."""
    with open(path, "wb") as file:
        for index in range(octets // 2**20):
            file.write(random.Random(index).randbytes(2**20))
    return path


@pytest.mark.reports("leak")
def test_a_gigabyte_is_copied_and_compared(scene, target):
    program = scene.compiled("cc -O1 -Wall", "iscsi_copy.c", "-liscsi")
    source = random_file(scene.folder / "source", COPY_OCTETS)
    target.admin("iser", "delete --mode target --force --tid 1")
    disk = target.disk("iser", 1, COPY_OCTETS)
    for action in ("write", "compare"):
        printed = scene.run([program, action, source, target.url("iser"), INITIATOR], seconds=120, far=True)
        assert f"{COPY_OCTETS} octets" in printed
    assert filecmp.cmp(source, disk, shallow=False)
    scene.carried(connections=2, octets=2 * COPY_OCTETS)
