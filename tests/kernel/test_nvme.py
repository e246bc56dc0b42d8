# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NVMe over Fabrics: the kernel's target and its initiator, over a wire between two devices."""

import conftest
import consumers
import ends
import nvme
import pytest

BULK, MB = consumers.BULK, consumers.MB


@pytest.fixture(scope="module", params=[0, 1], ids=["queues", "srq"])
def wire(request, kernel):
    """With receive queues of the QPs, then with one for all."""
    consumers.mount_configfs()
    wire = consumers.Wire(conftest.LINK_TYPE)
    consumers.load(kernel, "brd", "rd_nr=1", f"rd_size={nvme.DISK_KB}")
    consumers.load(kernel, "nvme-rdma")
    consumers.load(kernel, "nvmet-rdma", f"use_srq={request.param}")
    yield wire
    consumers.unload(kernel, "nvmet_rdma", "nvmet", "nvme_rdma", "nvme_fabrics", "brd")
    wire.close()


@pytest.fixture
def target(wire):
    target = nvme.Target(wire.addresses[1])
    yield target
    target.close()


@pytest.fixture
def host(wire, target):  # pylint: disable=unused-argument
    host = nvme.Host(wire)
    host.connect()
    yield host
    if nvme.CONTROLLERS.exists() and any(nvme.CONTROLLERS.iterdir()):
        host.disconnect()


def test_1_gb_is_read_back(host):
    host.verify(BULK)


def test_1_gb_over_a_link_that_loses_packets(host):
    with host.wire.loss() as loss:
        host.verify(BULK)
        assert loss.lost() >= consumers.LOST_MIN


def test_sizes_in_any_order(host):
    consumers.fio(nvme.DISK, "randwrite", 128 * MB, "--bsrange=4k-1m", "--do_verify=1", *consumers.QUEUED)


def test_connected_again_and_again(host):
    for _ in range(5):
        host.disconnect()
        host.connect()
    host.verify(16 * MB)


def test_the_host_s_device_goes(host):
    """Its controllers go along, and I/O fails; with a device it connects again."""
    with_io = consumers.start_fio(nvme.DISK)
    try:
        host.wire.wait_for_traffic()
        host.wire.delete_device(host.wire.devices[0])
        assert with_io.wait_exit(ends.SECONDS_MAX) != 0
    finally:
        with_io.close()
    assert not nvme.DISK.exists()
    host.wire.add_device(0)
    host.connect()
    host.verify(16 * MB)


def test_the_target_s_device_goes(host, target):
    """The host tries again until the target listens once more, and I/O goes on."""
    with_io = consumers.start_fio(nvme.DISK)
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
