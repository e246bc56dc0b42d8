# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two processes that measure: what is told when one of them does not do well. No process stays."""

import os
import resource
import types

import driver_path
import app_files
import application
import beds
import others
import pair
import points
import pytest
import workers

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
        run(server, client, seconds=3)


def test_a_program_that_does_not_exist_is_a_failure():
    with pytest.raises(pair.Failure, match="server does not start"):
        pair.run(pair.Pair(beds.LOOPBACK, ["/nowhere/bench-tcp"], ["true"], 0, "ready", None, 5))


def open_files():
    return len(os.listdir("/proc/self/fd"))


def fake_comparator(folder):
    """As fi_pingpong is run, but by this Python."""
    comparator = others.Comparator()
    line = f"{folder / 'bench-tcp'} "
    lines = (line + "server {address} {port}",
             line + "client {address} {port} latency size=4 mode=block")
    return types.SimpleNamespace(run=lambda bed, *_: comparator.pair(bed, lines))


class FakeApplication(application.Application):
    def measure(self, scene, keys, seconds):
        scene.server(["sh", "-c", "echo ready; exec sleep 60"], scene.port(), ready="ready")
        scene.load(["true"])
        return {}


def programs(folder):
    """Each kind of program that the driver runs, by what only speaks."""
    plain = application.Way("tcp", dict(os.environ), None)
    return {"worker": workers.Worker("tcp", str(folder), ""), "application": FakeApplication(plain),
            "comparator": fake_comparator(folder), "ftp": app_files.Ftp(plain)}


@pytest.mark.parametrize("name", ["worker", "application", "comparator", "ftp"])
def test_a_run_leaves_no_file_open(tmp_path, name):
    """A run of the default form is some 2,000 runs in one process."""
    each = programs(driver_path.fake_workers(tmp_path))[name]
    if name == "ftp" and each.missing():
        pytest.skip(each.missing())
    series = points.tcp("x", "latency", op="send", mode="block", size=2**20)
    each.run(beds.LOOPBACK, series, 0.01)
    before = open_files()
    for _ in range(3):
        each.run(beds.LOOPBACK, series, 0.01)
    assert open_files() == before


def test_a_program_is_heard_whatever_the_number_of_its_pipes():
    """select(2) knows no file beyond FD_SETSIZE."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        assert run(READY, "echo 42") == "42\n"
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
