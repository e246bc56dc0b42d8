# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections leave direct mode in the midst of a transfer, by every way there is, and lose no octet. Who has not
asked for direct mode has none of it. And how they end when the program is killed."""

import pathlib
import signal
import subprocess
import sys

import pytest

import conftest
import direct_load
from test_sockets_scenes import environment

LOAD = pathlib.Path(direct_load.__file__)


# How a connection was left, and what its peer sees then.
ENDS = {"written": "end 17", "writing": "reset", "unread": "reset 1"}


class Pair:
    """A program and its peer, both of direct_load.py."""

    def __init__(self, logs, port):
        self.env = environment(logs, "direct")
        self.port = port
        self.programs = []

    def start(self, role, *args):
        argv = [sys.executable, str(LOAD), role, str(self.port), *args]
        self.programs.append(conftest.program.Program(argv, env=self.env))
        return self.programs[-1]

    def report(self):
        return "\n".join(program.report() for program in self.programs)


@pytest.fixture
def pair(tmp_path):
    opened = Pair(tmp_path, conftest.program.free_port())
    yield opened
    for program in opened.programs:
        program.close()


def leave(pair, how):
    witness = pair.start("witness")
    witness.wait_listening(pair.port)
    victim = pair.start("die", how)
    victim.wait_until(lambda: "ready" in victim.output(), "ready")
    return witness, victim


@pytest.mark.parametrize("how", ENDS)
def test_killed(pair, how):
    """In order where all is said, else as a reset, which is no end in order."""
    witness, victim = leave(pair, how)
    victim.process.kill()
    victim.wait_exit()
    witness.process.send_signal(signal.SIGUSR1)
    assert witness.wait_exit() == 0, pair.report()
    assert witness.output().splitlines()[-1].startswith(ENDS[how]), pair.report()


def test_status(pair):
    """What is direct is listed like what the keeper carries; the keeper may still be at its start."""
    witness, victim = leave(pair, "written")

    def rows():
        argv = [conftest.BUILD / "bin" / "anywarp", "sockets", "--status", str(victim.pid)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        return [line.split() for line in done.stdout.splitlines()[1:]]

    listed = victim.wait_until(rows, "connection in the status")
    assert [row[1:5] + row[-1:] for row in listed] == [
        ["on", f"127.0.0.1:{pair.port}", "6", "17", "established"]]
    witness.process.send_signal(signal.SIGUSR1)


@pytest.mark.parametrize("mode", ["on", "off", None])
@pytest.mark.parametrize("way", direct_load.WAYS)
def test_way(way, mode, tmp_path):
    env = environment(tmp_path, "on")
    env.pop("ANYWARP_SOCKETS_DIRECT")
    if mode:
        env["ANYWARP_SOCKETS_DIRECT"] = mode
    port = conftest.program.free_port()
    ends = []
    try:
        for args in (["echo", str(port)], ["through", str(port), way]):
            ends.append(conftest.program.Program([sys.executable, str(LOAD), *args], env=env))
            if len(ends) == 1:
                ends[0].wait_listening(port)
        assert ends[1].wait_exit() == 0, "\n".join(end.report() for end in ends)
        assert ends[0].wait_exit() == 0, ends[0].report()
    finally:
        for end in ends:
            end.close()
