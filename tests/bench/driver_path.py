# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Lets the driver's tests import its modules, and starts the driver with workers that only speak."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DRIVER = ROOT / "bench" / "driver"
for folder in (DRIVER, ROOT / "tools" / "lib"):
    sys.path.insert(0, str(folder))
sys.dont_write_bytecode = True

import program  # noqa: E402


def fake_workers(folder):
    """A folder with measuring programs that measure nothing, by this Python, without what it takes long to find."""
    _, text = (HERE / "fake_worker.py").read_text(encoding="utf-8").split("\n", 1)
    for name in ("bench-tcp", "bench-tls", "bench-verbs", "bench-handover"):
        path = folder / name
        path.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
        path.chmod(0o755)
    return folder


def command(workers, out, *args, form="--short", page=False):
    """Without a page as where matplotlib is not installed: to load it takes four times as long as all else of such a run."""
    return [sys.executable, "-B", *([] if page else ["-S"]), str(DRIVER / "main.py"), f"--workers={workers}", "--out",
            str(out), form, *args]


def bench(workers, out, *args, form="--short", page=False, **env):
    """A whole run of the driver, on loopback unless args say otherwise."""
    return subprocess.run(command(workers, out, *args, form=form, page=page), capture_output=True, text=True,
                          timeout=120 * program.SLOWNESS, env={**os.environ, **env}, check=False)
