# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NFS: the kernel's server and its client, over RDMA or TCP."""

import pathlib

import consumers
import ends
import program

PORTS = {"rdma": 20049, "tcp": 2049}
EXPORT, MOUNT, STATE, CONTROL = (pathlib.Path(path) for path in ("/run/export", "/run/mnt", "/var/lib/nfs", "/proc/fs/nfsd"))
GRACE_SECONDS = 10  # 90, when nobody says so


class Server:
    """nfsd, with the daemons it asks: rpcbind and mountd. It listens for TCP anyway. into starts a program in its network
    namespace."""

    def __init__(self, into, transport="rdma"):
        self.into = into
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
        self.run("rpc.nfsd", *([f"--rdma={PORTS['rdma']}"] if transport == "rdma" else []), "4")

    @staticmethod
    def end_grace():
        """No client had anything that it could claim again. Only in the first network namespace nfsd can be told so."""
        consumers.write(CONTROL / "v4_end_grace", "Y")

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
    """A mount, made in the network namespace that into leads to, of the server at the address."""

    def __init__(self, into, address, version, transport="rdma"):
        self.into, self.address, self.version, self.transport = into, address, version, transport

    def mount(self):
        path = EXPORT if self.version == 3 else "/"
        extra = ",nolock,mountproto=tcp" if self.version == 3 else ""
        options = f"vers={self.version},proto={self.transport},port={PORTS[self.transport]}{extra}"
        MOUNT.mkdir(exist_ok=True)
        ends.run([*self.into, "mount", "-t", "nfs", "-o", options, f"{self.address}:{path}", MOUNT])

    @staticmethod
    def unmount():
        ends.run(["umount", MOUNT])

    def remount(self):
        """Nothing that was written is known here any more."""
        self.unmount()
        self.mount()
