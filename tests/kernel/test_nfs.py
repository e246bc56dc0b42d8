# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NFS over RDMA: the kernel's server in one network namespace, its client in the other."""

import os

import consumers
import ends
import nfs
import pytest

MODULES = ("rpcrdma", "nfsv4", "nfsv3", "nfsd")
BULK, MB = consumers.BULK, consumers.MB


@pytest.fixture
def link(kernel, open_link):
    for module in MODULES:
        consumers.load(kernel, module)
    link = open_link("kernel_kernel", ends.MTU_MAX)
    server = nfs.Server(link.server.into)
    yield link
    server.close()


@pytest.fixture(params=[4.2])
def client(request, link):
    client = nfs.Client(link.client.into, link.server.address, request.param)
    client.mount()
    yield client
    if os.path.ismount(nfs.MOUNT):
        client.unmount()


def check_write_and_read(link, client, size):
    """What the client wrote is what the server has, and what the client reads; it crosses the link each time."""
    before = ends.octets(link)
    consumers.fio(nfs.MOUNT / "data", "write", size, "--bs=1m", "--do_verify=0", "--end_fsync=1")
    written = ends.octets(link)
    assert written - before >= size
    consumers.fio(nfs.EXPORT / "data", "read", size, "--bs=1m")
    client.remount()
    consumers.fio(nfs.MOUNT / "data", "read", size, "--bs=1m")
    assert ends.octets(link) - written >= size
    nfs.MOUNT.joinpath("data").unlink()


def test_1_gb_is_read_back(link, client):
    check_write_and_read(link, client, BULK)


@pytest.mark.parametrize("client", [3, 4.0], indirect=True)
def test_older_versions(link, client):
    check_write_and_read(link, client, 64 * MB)


def test_1_gb_over_a_link_that_loses_packets(link, client):
    interfaces = [(end.into, ends.INTERFACE) for end in (link.server, link.client)]
    with consumers.Loss(*interfaces) as loss:
        check_write_and_read(link, client, BULK)
        assert loss.lost() >= consumers.LOST_MIN


def test_sizes_without_a_cache(client):
    """In a message, beside one, in several: every size has its way."""
    consumers.fio(nfs.MOUNT / "data", "randwrite", 64 * MB, "--bsrange=512-1m", "--bs_unaligned", "--do_verify=1", *consumers.QUEUED)


@pytest.mark.parametrize("name", ["client", "server"])
def test_a_device_goes_under_a_mount(link, client, link_type, name):
    """I/O waits for it, and goes on when it is there again."""
    end = getattr(link, name)
    with_io = consumers.start_fio(nfs.MOUNT / "data")
    try:
        ends.wait_for_traffic(link)
        end.delete_device()
        assert with_io.status() is None, with_io.report()
        end.add_device(link_type)
        ends.wait_for_traffic(link)
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    check_write_and_read(link, client, 64 * MB)


def test_the_module_goes_under_a_mount(link, kernel, client, link_type):
    both = (link.server, link.client)
    with_io = consumers.start_fio(nfs.MOUNT / "data")
    try:
        ends.wait_for_traffic(link)
        kernel.unload(link_type)
        assert not kernel.devices()
        kernel.load(link_type)
        for end in both:
            end.add_device(link_type)
        ends.wait_for_traffic(link)
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    check_write_and_read(link, client, 64 * MB)
