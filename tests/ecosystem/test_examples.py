# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The examples in Python and Rust: each writes a text into its server's memory, which says what it has."""

import os
import pathlib

import pytest

import scene as scenes

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"  # Debian's, which python3-pyverbs is for
NOTE_PY = ROOT / "examples" / "note.py"
NOTE_RS = ROOT / "build" / "rust" / "debug" / "note"
RUST_LOG = ROOT / "build" / "logs" / "rust.log"
TEXT = "Grüße, " + 300 * "over RDMA "


def why_not_built():
    """Of ./dev test --ecosystem, which builds it."""
    if not RUST_LOG.exists():
        return "./dev test --ecosystem does that"
    lines = RUST_LOG.read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no word of why")


def note(scene, *program):
    port = scene.port()
    server = scene.server([*program, port], port)
    client = scene.client([*program, port, scene.address, TEXT])
    scene.ends_well(client, server)
    said, due = server.output(), f"the client wrote: {TEXT}\n"
    assert said == due or scenes.CHECKED and said.startswith(due)
    scene.carried(octets=len(TEXT))


@pytest.mark.program("examples/note.py (pyverbs)")
def test_python(scene):
    if not os.path.isdir("/usr/lib/python3/dist-packages/pyverbs"):
        pytest.skip("not installed: python3-pyverbs")
    note(scene, PYTHON, NOTE_PY)


@pytest.mark.program("examples/rust (the crate sideway)")
def test_rust(scene):
    if not NOTE_RS.exists():
        pytest.skip(f"not built: {why_not_built()}")
    note(scene, NOTE_RS)
