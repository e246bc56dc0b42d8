# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NVMe over Fabrics: the kernel's target and its initiator, over a wire between two devices."""

import pathlib

import conftest
import consumers
import ends
import pytest

NQN = "nqn.2026-01.org.anywarp:test"
HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
HOST_ID = "11111111-2222-3333-4444-555555555555"
PORT = 4420
TARGET = consumers.CONFIGFS / "nvmet"
CONTROLLERS = pathlib.Path("/sys/class/nvme")
DISK = pathlib.Path("/dev/nvme0n1")
DISK_KB = 1 << 20
BULK, MB = consumers.BULK, consumers.MB


class Target:
    """A RAM disk as a namespace of a subsystem that any host may use."""

    def __init__(self, address):
        self.subsystem, self.port = TARGET / "subsystems" / NQN, TARGET / "ports" / "1"
        self.namespace = self.subsystem / "namespaces" / "1"
        self.link = self.port / "subsystems" / NQN
        self.subsystem.mkdir()
        consumers.write(self.subsystem / "attr_allow_any_host", 1)
        self.namespace.mkdir()
        consumers.write(self.namespace / "device_path", "/dev/ram0")
        consumers.write(self.namespace / "enable", 1)
        self.port.mkdir()
        for name, value in {"trtype": "rdma", "adrfam": "ipv4", "traddr": address, "trsvcid": PORT}.items():
            consumers.write(self.port / f"addr_{name}", value)
        self.listen()

    def listen(self):
        self.link.symlink_to(self.subsystem)

    def stop_listening(self):
        self.link.unlink()

    def close(self):
        if self.link.is_symlink():
            self.stop_listening()
        for path in (self.port, self.namespace, self.subsystem):
            path.rmdir()


class Host:
    """The initiator."""

    def __init__(self, wire):
        self.wire = wire

    def connect(self, *options):
        ends.run(["nvme", "connect", "--transport=rdma", f"--traddr={self.wire.addresses[1]}", f"--trsvcid={PORT}",
                  f"--nqn={NQN}", f"--hostnqn={HOST}", f"--hostid={HOST_ID}", *options])
        ends.wait_until(DISK.exists, "disk")

    @staticmethod
    def disconnect():
        ends.run(["nvme", "disconnect", f"--nqn={NQN}"])
        assert not DISK.exists()

    def verify(self, size):
        consumers.verify_disk(self.wire, DISK, size)
        consumers.fio("/dev/ram0", "read", size, "--bs=1m")


@pytest.fixture(scope="module", params=[0, 1], ids=["queues", "srq"])
def wire(request, kernel):
    """With receive queues of the QPs, then with one for all."""
    consumers.mount_configfs()
    wire = consumers.Wire(conftest.LINK_TYPE)
    consumers.load(kernel, "brd", "rd_nr=1", f"rd_size={DISK_KB}")
    consumers.load(kernel, "nvme-rdma")
    consumers.load(kernel, "nvmet-rdma", f"use_srq={request.param}")
    yield wire
    consumers.unload(kernel, "nvmet_rdma", "nvmet", "nvme_rdma", "nvme_fabrics", "brd")
    wire.close()


@pytest.fixture
def target(wire):
    target = Target(wire.addresses[1])
    yield target
    target.close()


@pytest.fixture
def host(wire, target):  # pylint: disable=unused-argument
    host = Host(wire)
    host.connect()
    yield host
    if CONTROLLERS.exists() and any(CONTROLLERS.iterdir()):
        host.disconnect()


def test_1_gb_is_read_back(host):
    host.verify(BULK)


def test_1_gb_over_a_link_that_loses_packets(host):
    with host.wire.loss() as loss:
        host.verify(BULK)
        assert loss.lost() >= consumers.LOST_MIN


def test_sizes_in_any_order(host):
    consumers.fio(DISK, "randwrite", 128 * MB, "--bsrange=4k-1m", "--do_verify=1", *consumers.QUEUED)


def test_connected_again_and_again(host):
    for _ in range(5):
        host.disconnect()
        host.connect()
    host.verify(16 * MB)


def test_the_host_s_device_goes(host):
    """Its controllers go along, and I/O fails; with a device it connects again."""
    with_io = consumers.start_fio(DISK)
    try:
        host.wire.wait_for_traffic()
        host.wire.delete_device(host.wire.devices[0])
        assert with_io.wait_exit(ends.SECONDS_MAX) != 0
    finally:
        with_io.close()
    assert not DISK.exists()
    host.wire.add_device(0)
    host.connect()
    host.verify(16 * MB)


def test_the_target_s_device_goes(host, target):
    """The host tries again until the target listens once more, and I/O goes on."""
    with_io = consumers.start_fio(DISK)
    try:
        host.wire.wait_for_traffic()
        host.wire.delete_device(host.wire.devices[1])
        target.stop_listening()
        host.wire.add_device(1)
        target.listen()
        host.wire.wait_for_traffic()
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    host.verify(16 * MB)
