# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""'anywarp check --like NAME' on programs that know nothing of it: the node type and the transport that they see, and that rdma_cm
works as before."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["ANYWARP_BUILD"]).resolve()
ANYWARP = str(BUILD / "bin" / "anywarp")
DEVICE = str(BUILD / "tests" / "like_device")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("ANYWARP_", "LD_"))}
IWARP, IB, UNSPECIFIED = (1, 4), (0, 1), (4, 7)  # of enum ibv_transport_type and enum ibv_node_type


def check(*command, **env):
    return subprocess.run([ANYWARP, "check", *command], env={**ENVIRONMENT, **env}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
@pytest.mark.parametrize("adapter, kind", [("mlx5", IB), ("irdma", IWARP), ("bnxt", IB), ("efa", UNSPECIFIED), ("siw", IWARP),
                                           ("rxe", IB)])
def test_the_device_shows_the_adapters_kind(adapter, kind, persona):
    done = check("--like", adapter, "--persona", persona, "--", DEVICE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{where}: transport {kind[0]}, node {kind[1]}\n" for where in ("rdma_cm", "list"))


@pytest.mark.parametrize("persona, kind", [("iwarp", IWARP), ("roce", IB)])
def test_without_it_the_persona_decides(persona, kind):
    done = check("--vary", "1", "--persona", persona, "--", DEVICE)
    assert f"list: transport {kind[0]}, node {kind[1]}\n" in done.stdout, done.stderr


@pytest.mark.parametrize("persona", ["iwarp", "roce"])
@pytest.mark.parametrize("adapter", ["mlx5", "irdma", "bnxt", "siw", "rxe"])
def test_rdma_cm_connects(start, port, adapter, persona):
    start.server("rping -s -a 127.0.0.1 -C 2", port)
    done = check("--rules", "none", "--like", adapter, "--persona", persona, "--", "timeout", "20", "rping", "-c", "-a", "127.0.0.1",
                 "-p", str(port), "-C", "2", "-v")
    assert done.returncode == 0 and done.stdout.count("ping data: ") == 2, done.stderr
