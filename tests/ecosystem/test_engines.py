# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Transfer engines as pip installs them, in the venv build/engines that ./dev test --ecosystem makes: blocks of 1 MiB written and
read by move_*.py, their octets compared; the crate async-rdma by async_rdma, which is built in build/async-rdma."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
VENV = ROOT / "build" / "engines"
LOG = ROOT / "build" / "logs" / "engines.log"
BLOCKS_RS = ROOT / "build" / "async-rdma" / "target" / "debug" / "blocks"
BLOCKS_RS_LOG = ROOT / "build" / "logs" / "async-rdma.log"
PYTHON = VENV / "bin" / "python"
OCTETS = 2 * (16 << 20)  # of moves.py, both ways together
EQUAL = "the octets are equal"
# The server gives its process a rank that only root of the whole machine may give: that much is left out.
INFINISTORE = "import infinistore.server as s; s.prevent_oom = lambda: None; s.main()"
# NIXL brings a libibverbs under a name of its own, with UCX. UCX would use shared memory within one host.
NIXL = {"UCX_TLS": "rc_verbs,ud_verbs", "UCX_NET_DEVICES": "anywarp0:1"}

pytestmark = pytest.mark.personas("roce")


def skip_uninstalled(name, log, sign):
    """Skips a test whose engine could not be installed, with the installer's last word."""
    if not log.exists():
        pytest.skip("not installed: ./dev test --ecosystem does that")
    wrong = [line for line in log.read_text(encoding="utf-8").splitlines() if sign in line]
    pytest.skip(f"not installed: {wrong[-1] if wrong else name}")


def need_engine(package):
    if not list(VENV.glob(f"lib/python*/site-packages/{package}")):
        skip_uninstalled(package, LOG, "ERROR")


def both_ends(scene, program, **env):
    port = scene.port()
    server = scene.server([PYTHON, HERE / program, "server", scene.address, port, scene.address], port, **env)
    client = scene.client([PYTHON, HERE / program, "client", scene.address, port, scene.client_address], **env)
    scene.ends_well(client, server)
    assert EQUAL in client.output() and EQUAL in server.output()
    scene.carried(octets=OCTETS)


@pytest.mark.program("Mooncake transfer engine")
def test_mooncake(scene):
    need_engine("mooncake")
    both_ends(scene, "move_mooncake.py")


@pytest.mark.program("Mooncake transfer engine")
@pytest.mark.parametrize("operation", ["write", "read"])
def test_mooncake_bench(scene, operation):
    need_engine("mooncake")
    bench = f"{VENV}/bin/transfer_engine_bench -protocol=rdma -device_name=anywarp0 " \
            "-metadata_server=P2PHANDSHAKE -buffer_size=67108864 -local_server_name="
    target = scene.start(f"{bench}{scene.address} -mode=target")
    segment = target.wait_output(r"listening on ([0-9.]+:\d+)").group(1)
    client = scene.client(f"{bench}{scene.client_address} -segment_id={segment} -operation={operation} -duration=1 -threads=1 "
                         "-batch_size=16 -block_size=1048576")
    scene.ends_well(client)
    told = re.search(r"batch count (\d+), throughput", client.output())
    scene.carried(octets=int(told.group(1)) * (16 << 20))


@pytest.mark.program("NIXL (UCX backend)")
@pytest.mark.reports("qp-destroyed")
def test_nixl(scene):
    need_engine("nixl")
    both_ends(scene, "move_nixl.py", LD_PRELOAD=scene.library("libibverbs.so.1"), **NIXL)


@pytest.mark.program("InfiniStore")
@pytest.mark.reports("mr-deregistered", "lkey-unknown")
def test_infinistore(scene):
    need_engine("infinistore")
    port = scene.port()
    server = scene.server([PYTHON, "-c", INFINISTORE, "--host", scene.address, "--service-port", port, "--manage-port",
                           scene.port(), "--dev-name", "anywarp0", "--link-type", "Ethernet", "--prealloc-size", 1,
                           "--log-level", "warning"], port)
    assert EQUAL in scene.run([PYTHON, HERE / "move_infinistore.py", scene.address, port], far=True)
    # Its libuv watches the completion channel for writing, too, and it would look for an event without end.
    assert "Failed to get CQ event" not in server.output()
    # Its client ends with a Send that names no memory. The server's receives are none of that.
    assert "CQ error" not in server.output()
    scene.carried(octets=OCTETS)


@pytest.mark.program("async-rdma (a Rust crate)")
@pytest.mark.reports("qp-destroyed", "leak")
def test_async_rdma(scene):
    if not BLOCKS_RS.exists():
        skip_uninstalled("async-rdma", BLOCKS_RS_LOG, "error")
    port = scene.port()
    at = f"{scene.address}:{port}"
    server = scene.server([BLOCKS_RS, "server", at], port)
    client = scene.client([BLOCKS_RS, "client", at])
    scene.ends_well(client, server)
    assert EQUAL in client.output() and EQUAL in server.output()
    scene.carried(octets=OCTETS)
