# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program does with a connection in the midst of a transfer, by every way there is, loses no octet. How a
connection ends when its program is killed, or when its peer has closed. All as TCP has it."""

import pathlib
import signal
import sys

import pytest

import conftest
import ways_load
from test_sockets_scenes import environment

LOAD = pathlib.Path(ways_load.__file__)
# Of both ends, as test_sockets_scenes.py has them.
RULES = {"tcp": None, "record": "record", "proxy": "on"}

# How a connection was left, and what its peer sees then.
ENDS = {("written", "17"): "end 17", ("written", "100000"): "end 100000", ("written", "600000"): "end 600000",
        ("unread",): "reset 1"}


class Pair:
    """A program and its peer, both of ways_load.py."""

    def __init__(self, logs, port, rules):
        self.env = environment(logs, rules)
        self.port = port
        self.programs = []

    def start(self, role, *args):
        argv = [sys.executable, str(LOAD), role, str(self.port), *args]
        self.programs.append(conftest.program.Program(argv, env=self.env))
        return self.programs[-1]

    def report(self):
        return "\n".join(program.report() for program in self.programs)


@pytest.fixture(params=RULES)
def pair(request, tmp_path):
    opened = Pair(tmp_path, conftest.program.free_port(), RULES[request.param])
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


# Nobody reads: the last is about what there is room for.
@pytest.mark.parametrize("least", [1, 100_000, 500_000])
def test_killed_while_it_writes(pair, tmp_path, least):
    """What was written is there, whatever becomes of the write under way."""
    tally = tmp_path / "tally"
    tally.touch()
    witness, victim = leave(pair, "writing", str(tally))
    victim.wait_until(lambda: tally.stat().st_size >= least, f"{least} octets written")
    how, came = kill(witness, victim, pair).split()
    assert how in ("end", "reset") and int(came) >= tally.stat().st_size, pair.report()


def run(pair, server, client):
    serving = pair.start(*server)
    serving.wait_listening(pair.port)
    connecting = pair.start(*client)
    assert connecting.wait_exit() == 0, pair.report()
    assert serving.wait_exit() == 0, pair.report()


def test_both_write_first(pair):
    """Each has room for what the other one does not read yet."""
    run(pair, ["both_serve"], ["both_connect"])


def test_write_to_who_has_closed(pair):
    """The first octets are taken, and none once the peer's reset has come."""
    run(pair, ["leaver"], ["stayer", "later"])


@pytest.mark.parametrize("pair", ["tcp", "record"], indirect=True)
def test_second_write_at_once(pair):
    """At once: with no call between the writes that looks at the socket for the program. Over loopback a reset is there when the write
    returns that it answers, or as soon as a busy kernel has come to it. The proxy reads what a program has written after the write has
    returned, as a reset of another host comes after it."""
    run(pair, ["leaver"], ["stayer", "at once"])


@pytest.mark.parametrize("way", ways_load.WAYS)
def test_way(pair, way):
    run(pair, ["echo"], ["through", way])
