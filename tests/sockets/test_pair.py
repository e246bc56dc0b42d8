# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Mode `auto`, step by step: either process stops before each of its calls (gate.c), or ends there. The other one goes on as beside TCP,
and both ends of each connection use the pair, or both use TCP (pairing.c)."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import conftest
import program
import pytest

PAIRING = conftest.BUILD / "tests" / "pairing"
GATE = conftest.BUILD / "tests" / "gate.so"
SECONDS_MAX = 20 * program.SLOWNESS
PAIR_MS = "50"  # how long connect(2) waits for a server that is stopped
STEPS_MAX = 100
pytestmark = pytest.mark.skipif(bool(conftest.SANITIZER), reason="its ends may be too late for a pair")


@pytest.fixture
def auto(request, tmp_path):
    yield from conftest.open_mode(request, tmp_path, "pair")


def start_gated(mode, step, *argv):
    preload = f"{mode.environment()['LD_PRELOAD']} {GATE}"
    return mode.start(["env", f"LD_PRELOAD={preload}", f"GATE={step}", PAIRING, *argv], ANYWARP_SOCKETS_PAIR_MS=PAIR_MS)


def state_of(run):
    """As /proc has it; none of what has ended."""
    return "".join(program.read_stat(f"/proc/{run.pid}/stat")[:1])


def is_stopped(run):
    return state_of(run) == "T"


def port_of(server):
    return re.search(r"port (\d+)", server.output()).group(1)


def start_server(mode, how):
    server = mode.start([PAIRING, "serve", how])
    server.wait_output("port")
    return server


def kinds_of(client):
    """What both ends of a whole conversation used."""
    assert client.wait_exit(SECONDS_MAX) == 0, client.report()
    return re.search(r"done (\w+) (\w+)", client.output()).groups()


def await_stop_or(run, condition, what):
    """Returns whether the process has stopped."""
    program.wait_until(lambda: is_stopped(run) or condition(), what, SECONDS_MAX)
    return is_stopped(run)


def has_ended(run):
    return run.status() is not None


def files_of(run):
    return len(os.listdir(f"/proc/{run.pid}/fd"))


def steps():
    return itertools.takewhile(lambda step: step < STEPS_MAX, itertools.count(1))


@pytest.mark.parametrize("how, blocks", [("epoll", "nonblock"), ("thread", "")])
@pytest.mark.parametrize("end", ["goes on", "is killed"])
def test_client_at_each_step(auto, plain, how, blocks, end):
    """The server serves others meanwhile, and keeps nothing of a client that is killed."""
    server = start_server(auto, how)
    seen = set()
    files = None
    for step in steps():
        client = start_gated(auto, step, "ask", port_of(server), "word", *filter(None, [blocks]))
        stopped = await_stop_or(client, lambda: has_ended(client), f"step {step}")
        if stopped:
            assert kinds_of(plain.start([PAIRING, "ask", port_of(server), "plain"])) == ("tcp", "tcp"), step
        if stopped and end == "is killed":
            client.kill()
            files = files_of(server) if files is None else files
            program.wait_until(lambda: files_of(server) <= files, f"end of the client of step {step}", SECONDS_MAX)
            continue
        if stopped:
            client.send_signal("CONT")
        own, theirs = kinds_of(client)
        assert own == theirs, (step, client.report())
        seen.add(own)
        if not stopped:
            break
    assert step in range(20, STEPS_MAX - 1)
    assert "pair" in seen


@pytest.mark.parametrize("how, blocks", [("epoll", "nonblock"), ("thread", "")])
@pytest.mark.parametrize("end", ["goes on", "is killed"])
def test_server_at_each_step(auto, how, blocks, end):
    """connect(2) and the first write return meanwhile."""
    seen = set()
    for step in steps():
        server = start_gated(auto, step, "serve", how)
        if await_stop_or(server, lambda: "port" in server.output(), f"port or step {step}"):
            server.send_signal("CONT")
            server.wait_output("port")
        client = auto.start([PAIRING, "ask", port_of(server), "word", *filter(None, [blocks])], ANYWARP_SOCKETS_PAIR_MS=PAIR_MS)
        client.wait_output("written|ended|not connected", SECONDS_MAX)
        stopped = await_stop_or(server, lambda: has_ended(client), f"step {step}")
        if stopped and end == "is killed":
            server.kill()
            assert client.wait_exit(SECONDS_MAX) in (0, 2), (step, client.report())
            continue
        if stopped:
            server.send_signal("CONT")
        own, theirs = kinds_of(client)
        assert own == theirs, (step, client.report())
        seen.add(own)
        server.kill()
        if not stopped and step > 20:
            break
    assert step in range(20, STEPS_MAX - 1)
    assert seen == ({"pair"} if end == "is killed" else {"pair", "tcp"})


NOBODY = 65534
CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
queued = 0
for name in sys.argv[2:]:
    try:
        socket.socket(socket.AF_UNIX).connect(chr(0) + name)
        queued += 1
    except ConnectionRefusedError:
        pass  # the offer has ended
print(queued)
"""


def offers_of(run):
    """The names of its offers that listen."""
    links = [os.readlink(f"/proc/{run.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{run.pid}/fd")]
    inodes = {link[len("socket:["):-1] for link in links if link.startswith("socket:")}
    table = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    return [name for inode, name in re.findall(r" 00010000 0001 01 +(\d+) @(anywarp-offer:\w+)", table) if inode in inodes]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_stranger_at_each_step(auto):
    """One is in the offer's queue before the server."""
    server = start_server(auto, "epoll")
    strangers = 0
    for step in steps():
        client = start_gated(auto, step, "ask", port_of(server), "word")
        stopped = await_stop_or(client, lambda: has_ended(client), f"step {step}")
        if stopped:
            names = offers_of(client)
            done = subprocess.run([sys.executable, "-c", CONNECT, str(NOBODY), *names], check=True, stdout=subprocess.PIPE, text=True)
            strangers += int(done.stdout)
            client.send_signal("CONT")
        own, theirs = kinds_of(client)
        assert own == theirs, (step, client.report())
        if not stopped:
            break
    assert strangers


@pytest.mark.parametrize("how, blocks", [("epoll", "nonblock"), ("thread", "")])
def test_late_server_at_each_step_of_the_client(auto, plain, how, blocks):
    """The server is stopped until the client has waited for it, and accepts while the client is stopped."""
    server = start_server(auto, how)
    seen = set()
    for step in steps():
        server.send_signal("STOP")
        client = start_gated(auto, step, "ask", port_of(server), "word", *filter(None, [blocks]))
        stopped = await_stop_or(client, lambda: "written" in client.output(), f"step {step}")  # pylint: disable=cell-var-from-loop
        server.send_signal("CONT")
        assert kinds_of(plain.start([PAIRING, "ask", port_of(server), "plain"])) == ("tcp", "tcp"), step
        if stopped or await_stop_or(client, lambda: has_ended(client), f"step {step}"):  # pylint: disable=cell-var-from-loop
            client.send_signal("CONT")
            stopped = True
        own, theirs = kinds_of(client)
        assert own == theirs, (step, client.report())
        seen.add(own)
        if not stopped:
            break
    assert step in range(20, STEPS_MAX - 1)
    assert seen == {"pair", "tcp"}
