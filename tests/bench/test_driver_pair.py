# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two processes that measure: what is told when one of them does not do well. No process stays."""

import driver_path  # noqa: F401
import beds
import pair
import pytest

READY = "echo ready; "


def run(server, client, seconds=20):
    return pair.run(pair.Pair(beds.LOOPBACK, ["sh", "-c", server], ["sh", "-c", client], 0, "ready",
                              None, seconds))


def test_the_output_is_the_clients():
    assert run(READY, "echo 42; echo noise >&2") == "42\n"


@pytest.mark.parametrize("server, client, words", [
    (READY, "echo no memory >&2; exit 3", "client ended with status 3: no memory"),
    (READY, "kill -SEGV $$", "client died of SIGSEGV"),
    (READY + "kill -ABRT $$", "true", "server died of SIGABRT"),
    (READY + "echo lost >&2; exit 1", "exit 2", "client ended with status 2: ; server ended with "
     "status 1: lost"),
    ("echo address in use >&2; exit 1", "true", "server ended with status 1: address in use"),
    ("true", "true", "server ended before it was ready")])
def test_a_failure_says_who_and_why(server, client, words):
    with pytest.raises(pair.Failure, match=words):
        run(server, client)


@pytest.mark.parametrize("server, client, who", [(READY + "exec sleep 60", "exec sleep 60", "client"),
                                                 ("exec sleep 60", "true", "server")])
def test_a_time_out_says_who(server, client, who):
    with pytest.raises(pair.Failure, match=f"{who}: time-out"):
        run(server, client, seconds=0.3)


def test_a_program_that_does_not_exist_is_a_failure():
    with pytest.raises(pair.Failure, match="server does not start"):
        pair.run(pair.Pair(beds.LOOPBACK, ["/nowhere/bench-tcp"], ["true"], 0, "ready", None, 5))
