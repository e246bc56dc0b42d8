# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Connections leave direct mode in the midst of a transfer, by every way there is, and lose no octet. Who wants no
direct mode has none of it. And how they end when the program is killed."""

import pathlib
import signal
import subprocess
import sys

import pytest

import conftest
import direct_load
import sockets_status
from test_sockets_scenes import environment

LOAD = pathlib.Path(direct_load.__file__)


# How a connection was left, and what its peer sees then: by TCP alone, or once it has gone to where a kill loses nothing.
ENDS = {("written", "17"): "end 17", ("written", "100000"): "end 100000", ("written", "600000"): "end 600000",
        ("unread",): "reset 1"}


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


def leave(pair, *how):
    witness = pair.start("witness")
    witness.wait_listening(pair.port)
    victim = pair.start("die", *how)
    victim.wait_until(lambda: "ready" in victim.output(), "ready")
    return witness, victim


def kill(witness, victim, pair):
    """What the witness has seen, which comes to it only now: how it ended, and after how many octets."""
    victim.process.kill()
    victim.wait_exit()
    witness.process.send_signal(signal.SIGUSR1)
    assert witness.wait_exit() == 0, pair.report()
    return witness.output().splitlines()[-1]


@pytest.mark.parametrize("how", ENDS, ids="-".join)
def test_killed(pair, how):
    """What was written is there. In order where all is said and read, else as a reset, which is no end in order."""
    witness, victim = leave(pair, *how)
    assert kill(witness, victim, pair).startswith(ENDS[how]), pair.report()


# The last is beyond what is direct. There is room for some 700,000 while nobody reads, of which the write that waits,
# and is not counted, may have 100,000.
@pytest.mark.parametrize("least", [1, 100_000, 500_000])
def test_killed_while_it_writes(pair, tmp_path, least):
    """What was written is there, whatever becomes of the write under way."""
    tally = tmp_path / "tally"
    tally.touch()
    witness, victim = leave(pair, "writing", str(tally))
    victim.wait_until(lambda: tally.stat().st_size >= least, f"{least} octets written")
    how, came = kill(witness, victim, pair).split()
    assert how in ("end", "reset") and int(came) >= tally.stat().st_size, pair.report()


@pytest.mark.parametrize("roles", [("both_serve", "both_connect"), ("leaver", "stayer")],
                         ids=["write first", "closed"])
def test_both(pair, roles):
    """Each has room for what the other one does not read yet; and the first octets for who has closed are taken."""
    server = pair.start(roles[0])
    server.wait_listening(pair.port)
    client = pair.start(roles[1])
    assert client.wait_exit() == 0, pair.report()
    assert server.wait_exit() == 0, pair.report()


def test_status(pair):
    """What is direct is listed like what the keeper carries; the keeper may still be at its start."""
    pair.env["ANYWARP_SOCKETS_RECORD"] = "off"
    witness, victim = leave(pair, "written", "17")

    def rows():
        argv = [conftest.BUILD / "bin" / "anywarp", "sockets", "--status", str(victim.pid)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        return sockets_status.rows(done.stdout)

    listed = victim.wait_until(rows, "connection in the status")
    assert [(row.mode, row.peer, row.octets_in, row.octets_out, row.state) for row in listed] == [
        ("on", f"127.0.0.1:{pair.port}", "6", "17", "established")]
    witness.process.send_signal(signal.SIGUSR1)


@pytest.mark.parametrize("mode", ["off", None])
@pytest.mark.parametrize("way", direct_load.WAYS)
def test_way(way, mode, tmp_path):
    env = environment(tmp_path, "direct")
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
