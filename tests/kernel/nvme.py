# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""NVMe over Fabrics: the kernel's target and its initiator on a Wire (consumers.py), over RDMA or TCP."""

import pathlib

import consumers
import ends

NQN = "nqn.2026-01.org.anywarp:test"
HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
HOST_ID = "11111111-2222-3333-4444-555555555555"
PORT = 4420
TARGET = consumers.CONFIGFS / "nvmet"
CONTROLLERS = pathlib.Path("/sys/class/nvme")
DISK = pathlib.Path("/dev/nvme0n1")
DISK_KB = 1 << 20


class Target:
    """A RAM disk as a namespace of a subsystem that any host may use."""

    def __init__(self, address, transport="rdma"):
        self.subsystem, self.port = TARGET / "subsystems" / NQN, TARGET / "ports" / "1"
        self.namespace = self.subsystem / "namespaces" / "1"
        self.link = self.port / "subsystems" / NQN
        self.subsystem.mkdir()
        consumers.write(self.subsystem / "attr_allow_any_host", 1)
        self.namespace.mkdir()
        consumers.write(self.namespace / "device_path", "/dev/ram0")
        consumers.write(self.namespace / "enable", 1)
        self.port.mkdir()
        for name, value in {"trtype": transport, "adrfam": "ipv4", "traddr": address, "trsvcid": PORT}.items():
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

    def __init__(self, wire, transport="rdma"):
        self.wire, self.transport = wire, transport

    def connect(self, *options):
        ends.run(["nvme", "connect", f"--transport={self.transport}", f"--traddr={self.wire.addresses[1]}", f"--trsvcid={PORT}",
                  f"--nqn={NQN}", f"--hostnqn={HOST}", f"--hostid={HOST_ID}", *options])
        ends.wait_until(DISK.exists, "disk")

    @staticmethod
    def disconnect():
        ends.run(["nvme", "disconnect", f"--nqn={NQN}"])
        assert not DISK.exists()

    def verify(self, size):
        consumers.verify_disk(self.wire, DISK, size)
        consumers.fio("/dev/ram0", "read", size, "--bs=1m")
