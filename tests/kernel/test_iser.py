# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""iSER: the kernel's iSCSI target and its initiator, over a wire between two devices."""

import pathlib

import conftest
import consumers
import ends
import program
import pytest

IQN, INITIATOR = "iqn.2026-01.org.anywarp:target", "iqn.2026-01.org.anywarp:initiator"
PORT = 3260
TARGET = consumers.CONFIGFS / "target"
DATABASE, LOCKS = pathlib.Path("/etc/iscsi"), pathlib.Path("/run/lock")
CONFIGURATION = """node.startup = manual
node.session.timeo.replacement_timeout = 120
node.conn[0].timeo.login_timeout = 15
node.conn[0].timeo.noop_out_interval = 5
node.conn[0].timeo.noop_out_timeout = 5
"""
SESSIONS = pathlib.Path("/sys/class/iscsi_session")
DISK_PAGES = 1 << 18
BULK, MB = consumers.BULK, consumers.MB


class Target:
    """A RAM disk as a unit of a target that lets anybody in."""

    def __init__(self, address):
        self.address = address
        self.disk = TARGET / "core" / "rd_mcp_0" / "disk"
        self.disk.mkdir(parents=True)
        consumers.write(self.disk / "control", f"rd_pages={DISK_PAGES}")
        consumers.write(self.disk / "enable", 1)
        self.target = TARGET / "iscsi" / IQN
        self.group = self.target / "tpgt_1"
        self.unit = self.group / "lun" / "lun_0"
        self.unit.mkdir(parents=True)
        self.unit.joinpath("disk").symlink_to(self.disk)
        for name, value in {"authentication": 0, "generate_node_acls": 1, "cache_dynamic_acls": 1,
                            "demo_mode_write_protect": 0}.items():
            consumers.write(self.group / "attrib" / name, value)
        self.portal = self.group / "np" / f"{address}:{PORT}"
        self.listen()
        consumers.write(self.group / "enable", 1)

    def listen(self):
        """A portal is always one of iSCSI over TCP, too, and the device's port would be the same: that one is in another
        network namespace, while iSER's is in the first."""
        ends.run(["unshare", "--net", "sh", "-ec", f"ip link set lo up; ip addr add {self.address}/32 dev lo; mkdir {self.portal}"])
        consumers.write(self.portal / "iser", 1)

    def stop_listening(self):
        self.portal.rmdir()

    def close(self):
        consumers.write(self.group / "enable", 0)
        if self.portal.exists():
            self.stop_listening()
        self.unit.joinpath("disk").unlink()
        for path in (self.unit, self.group, self.target, self.target.parent, self.disk, self.disk.parent):
            path.rmdir()


class Initiator:
    """open-iscsi's daemon, whose files are for this time alone."""

    def __init__(self, wire):
        self.wire = wire
        ends.run(["mount", "-t", "tmpfs", "tmpfs", DATABASE])
        DATABASE.joinpath("initiatorname.iscsi").write_text(f"InitiatorName={INITIATOR}\n", encoding="ascii")
        DATABASE.joinpath("iscsid.conf").write_text(CONFIGURATION, encoding="ascii")
        LOCKS.mkdir(exist_ok=True)
        self.daemon = program.Program(["iscsid", "-f"])
        ends.wait_until(self.daemon_listens, "iscsid")
        self.admin("-o", "new")
        self.admin("-o", "update", "-n", "iface.transport_name", "-v", "iser")

    @staticmethod
    def daemon_listens():
        return "@ISCSIADM_ABSTRACT_NAMESPACE" in pathlib.Path("/proc/net/unix").read_text(encoding="ascii")

    def admin(self, *options):
        return ends.run(["iscsiadm", "-m", "node", "-T", IQN, "-p", f"{self.wire.addresses[1]}:{PORT}", *options])

    def log_in(self):
        """The disk that came."""
        self.admin("--login")
        return ends.wait_until(self.disk, "disk")

    def log_out(self):
        self.admin("--logout")
        assert not list(SESSIONS.iterdir())

    @staticmethod
    def disk():
        """Its blocks can be read only when its size is known."""
        found = [path for path in pathlib.Path("/sys/block").glob("sd*")
                 if path.joinpath("size").read_text(encoding="ascii").strip() != "0"]
        return pathlib.Path("/dev", found[0].name) if found else None

    def close(self):
        if list(SESSIONS.iterdir()):
            self.log_out()
        self.daemon.close()
        ends.run(["umount", DATABASE])


@pytest.fixture(scope="module")
def wire(kernel):
    consumers.mount_configfs()
    wire = consumers.Wire(conftest.LINK_TYPE)
    for module in ("ib_iser", "ib_isert"):
        consumers.load(kernel, module)
    yield wire
    consumers.unload(kernel, "ib_isert", "ib_iser", "iscsi_target_mod")
    wire.close()


@pytest.fixture
def target(wire):
    target = Target(wire.addresses[1])
    yield target
    target.close()


@pytest.fixture
def initiator(wire, target):  # pylint: disable=unused-argument
    initiator = Initiator(wire)
    yield initiator
    initiator.close()


def test_1_gb_is_read_back(initiator):
    consumers.verify_disk(initiator.wire, initiator.log_in(), BULK)


def test_1_gb_over_a_link_that_loses_packets(initiator):
    disk = initiator.log_in()
    with initiator.wire.loss() as loss:
        consumers.verify_disk(initiator.wire, disk, BULK)
        assert loss.lost() >= consumers.LOST_MIN


def test_sizes_in_any_order(initiator):
    consumers.fio(initiator.log_in(), "randwrite", 128 * MB, "--bsrange=4k-1m", "--do_verify=1", *consumers.QUEUED)


def test_in_and_out_again_and_again(initiator):
    for _ in range(5):
        disk = initiator.log_in()
        consumers.verify_disk(initiator.wire, disk, MB)
        initiator.log_out()


@pytest.mark.parametrize("number", [0, 1], ids=["initiator", "target"])
def test_a_device_goes_under_a_disk(initiator, target, number):
    """The daemon logs in again when it can, and I/O goes on."""
    wire = initiator.wire
    disk = initiator.log_in()
    with_io = consumers.start_fio(disk)
    try:
        wire.wait_for_traffic()
        wire.delete_device(wire.devices[number])
        if number == 1:
            target.stop_listening()
        wire.add_device(number)
        if number == 1:
            target.listen()
        wire.wait_for_traffic()
        assert with_io.status() is None, with_io.report()
    finally:
        with_io.close()
    consumers.verify_disk(wire, disk, 16 * MB)
