# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NFS over RDMA: the kernel's server in one network namespace, its client in the other."""

import os
import pathlib
import subprocess

import consumers
import ends
import program
import pytest

PORT = 20049
EXPORT, MOUNT, STATE, CONTROL = (pathlib.Path(path) for path in ("/run/export", "/run/mnt", "/var/lib/nfs", "/proc/fs/nfsd"))
GRACE_SECONDS = 10  # 90, when nobody says so
MODULES = ("rpcrdma", "nfsv4", "nfsv3", "nfsd")
BULK, MB = consumers.BULK, consumers.MB


class Server:
    """nfsd, with the daemons it asks: rpcbind and mountd."""

    def __init__(self, link):
        self.link = link
        self.into = link.server.into
        ends.run(["mount", "-t", "tmpfs", "tmpfs", STATE])
        for name in ("etab", "rmtab"):
            STATE.joinpath(name).touch()
        STATE.joinpath("v4recovery").mkdir()
        EXPORT.mkdir()
        ends.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", EXPORT])
        ends.run([*self.into, "mount", "-t", "nfsd", "nfsd", CONTROL])
        self.daemons = [self.start("rpcbind", "-w", "-f")]
        ends.wait_until(lambda: pathlib.Path("/run/rpcbind.sock").exists(), "rpcbind")
        self.daemons.append(self.start("rpc.mountd", "-F"))
        for name in ("nfsv4leasetime", "nfsv4gracetime"):
            consumers.write(CONTROL / name, GRACE_SECONDS)
        self.run("exportfs", "-o", "rw,no_root_squash,insecure,no_subtree_check,fsid=0", f"*:{EXPORT}")
        self.run("rpc.nfsd", f"--rdma={PORT}", "4")

    def start(self, *argv):
        return program.Program([*self.into, *argv])

    def run(self, *argv):
        return ends.run([*self.into, *argv])

    def close(self):
        self.run("rpc.nfsd", "0")
        self.run("exportfs", "-au")
        for daemon in self.daemons:
            daemon.close()
        for path in (CONTROL, EXPORT, STATE):
            ends.run(["umount", path])
        EXPORT.rmdir()


class Client:
    def __init__(self, link, version):
        self.link, self.version = link, version

    def mount(self):
        path = EXPORT if self.version == 3 else "/"
        extra = ",nolock,mountproto=tcp" if self.version == 3 else ""
        ends.run([*self.link.client.into, "mount", "-t", "nfs", "-o", f"vers={self.version},proto=rdma,port={PORT}{extra}",
                  f"{self.link.server.address}:{path}", MOUNT])

    @staticmethod
    def unmount():
        ends.run(["umount", MOUNT])

    def remount(self):
        """Nothing that was written is known here any more."""
        self.unmount()
        self.mount()


@pytest.fixture
def server(kernel, open_link):
    for module in MODULES:
        consumers.load(kernel, module)
    server = Server(open_link("kernel_kernel", ends.MTU_MAX))
    yield server
    server.close()


@pytest.fixture(params=[4.2])
def client(request, server):
    MOUNT.mkdir(exist_ok=True)
    client = Client(server.link, request.param)
    client.mount()
    yield client
    if os.path.ismount(MOUNT):
        client.unmount()


def check_write_and_read(client, size):
    """What the client wrote is what the server has, and what the client reads; it crosses the link each time."""
    before = ends.octets(client.link)
    consumers.fio(MOUNT / "data", "write", size, "--bs=1m", "--do_verify=0", "--end_fsync=1")
    written = ends.octets(client.link)
    assert written - before >= size
    consumers.fio(EXPORT / "data", "read", size, "--bs=1m")
    client.remount()
    consumers.fio(MOUNT / "data", "read", size, "--bs=1m")
    assert ends.octets(client.link) - written >= size
    MOUNT.joinpath("data").unlink()


def test_1_gb_is_read_back(client):
    check_write_and_read(client, BULK)


@pytest.mark.parametrize("client", [3, 4.0], indirect=True)
def test_older_versions(client):
    check_write_and_read(client, 64 * MB)


def test_1_gb_over_a_link_that_loses_packets(client):
    interfaces = [(end.into, ends.INTERFACE) for end in (client.link.server, client.link.client)]
    with consumers.Loss(*interfaces) as loss:
        check_write_and_read(client, BULK)
        assert loss.lost() >= consumers.LOST_MIN


def test_sizes_without_a_cache(client):
    """In a message, beside one, in several: every size has its way."""
    consumers.fio(MOUNT / "data", "randwrite", 64 * MB, "--bsrange=512-1m", "--bs_unaligned", "--do_verify=1", *consumers.QUEUED)


@pytest.mark.parametrize("name", ["client", "server"])
def test_a_device_goes_under_a_mount(client, link_type, name):
    """I/O waits for it, and goes on when it is there again."""
    end = getattr(client.link, name)
    with_io = consumers.start_fio(MOUNT / "data")
    try:
        ends.wait_for_traffic(client.link)
        end.delete_device()
        assert with_io.status() is None, with_io.report()
        end.add_device(link_type)
        ends.wait_for_traffic(client.link)
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    check_write_and_read(client, 64 * MB)


def test_the_module_goes_under_a_mount(kernel, client, link_type):
    both = (client.link.server, client.link.client)
    with_io = consumers.start_fio(MOUNT / "data")
    try:
        ends.wait_for_traffic(client.link)
        kernel.unload(link_type)
        assert not kernel.devices()
        kernel.load(link_type)
        for end in both:
            end.add_device(link_type)
        ends.wait_for_traffic(client.link)
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    check_write_and_read(client, 64 * MB)
