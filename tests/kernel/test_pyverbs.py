# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""pyverbs' own tests over the module: those of rdma_cm on RC QPs pass, and of the others none fails that is not
here with its reason."""

import gzip
import json
import pathlib
import shutil

import program
import pytest
from over_module import HERE, INTERFACE, device  # noqa: F401

# Where it is not installed: what `apt-get download python3-pyverbs` and `dpkg -x` leave there.
FETCHED = HERE.ROOT / "build" / "pyverbs" / "root"
PACKAGE = next((path for path in (pathlib.Path("/"), FETCHED)
                if (path / "usr/lib/python3/dist-packages/pyverbs").is_dir()), None)
RUN = HERE.ROOT / "tests" / "ecosystem" / "pyverbs_run.py"
SECONDS_MAX = 800

SERVED = {f"tests.test_rdmacm.CMTestCase.test_rdmacm_{name}"
          for name in ("sync_traffic", "async_reject_traffic", "async_read", "async_write")}
# In their order: connected by rdma_cm alone; InfiniBand's event CONNECT_RESPONSE; UD; sets a time-out of
# InfiniBand's before it connects, and fails over siw in the same kernel too.
FAILING = ("Failed to modify QP state to RTS", "test_rdmacm_async_traffic_external_qp", "test_rdmacm_async_udp_traffic",
           "test_rdmacm_async_traffic")


def unpacked(folder):
    """The tests as they were before Debian compressed the long ones."""
    target = folder / "tests"
    target.mkdir()
    for path in (PACKAGE / "usr/share/doc/rdma-core/tests").iterdir():
        if path.suffix == ".gz":
            (target / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        else:
            shutil.copy(path, target)
    return target


@pytest.mark.skipif(not PACKAGE, reason="not installed: python3-pyverbs")
def test_pyverbs(device, tmp_path, request):  # noqa: F811
    results = tmp_path / "results.json"
    modules = PACKAGE / "usr/lib/python3/dist-packages"
    started = program.Program(["env", f"PYTHONPATH={modules}", "/usr/bin/python3", str(RUN), str(unpacked(tmp_path)),
                               str(results), device, INTERFACE])
    request.node.told = started.report
    assert started.wait_exit(SECONDS_MAX) == 0
    told = json.loads(results.read_text(encoding="utf-8"))
    assert {name: told[name] for name in SERVED if told[name][0] != "passed"} == {}
    failed = {name: reason for name, (outcome, reason) in told.items() if outcome == "failed"}
    assert {name: reason for name, reason in failed.items()
            if not any(words in name or words in reason for words in FAILING)} == {}
