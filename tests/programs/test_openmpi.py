# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Open MPI's btl tcp: two ranks, each a server and a client of the other, in libevent's epoll; mpi_check.c compares every
result."""

import pathlib
import re
import shutil
import subprocess

import pytest
import scene as scenes

CHECK = pathlib.Path(__file__).resolve().parents[1] / "ecosystem" / "mpi_check.c"
MPIRUN = ("mpirun.openmpi --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca osc pt2pt "
          "--mca btl tcp,self --mca btl_tcp_if_include lo")
pytestmark = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="libopenmpi-dev is not installed")


@pytest.fixture(scope="module")
def check():
    folder = scenes.new_folder()
    subprocess.run(["mpicc.openmpi", "-O1", "-o", folder / "check", CHECK], check=True)
    yield folder / "check"
    shutil.rmtree(folder)


def rank(scene, rule, check, kind, ports):
    """What mpirun is to start. Its own connections to mpirun are none of the test's: in `on` they would not be any."""
    rules = [f"{rule} port={each}" for each in ports] + ["off"] if rule == "on" else [rule] if rule else []
    prefix = scene.install.prefix("\n".join(rules)) if rules else []
    return ["-np", "1", "env", f"OMPI_MCA_btl_tcp_port_min_v4={ports[0]}", "OMPI_MCA_btl_tcp_port_range_v4=1",
            *prefix, check, kind]


@pytest.mark.parametrize("kind", ["point", "collective", "onesided"])
def test_btl_tcp(scene, check, kind):
    ports = scene.port(), scene.port()
    said = scene.client([*MPIRUN.split(), *rank(scene, scene.mode.server, check, kind, ports), ":",
                         *rank(scene, scene.mode.client, check, kind, ports[::-1])], rule=None)
    assert re.search(r"compared \d+ octets among 2 ranks", said)
    opened = [port for port in ports if scene.tap.seen(port).opened]
    both = len(opened) > 1  # each has connected to the other: one connection is given up, and no pair is made (docs/programs.md)
    for port in opened:
        scene.judge(port, unused=both, pair=False if both else None)
    scene.judged.update(ports)
    assert opened
