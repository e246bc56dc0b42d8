# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An end whose system calls of one kind take long, by strace's injection: what another thread, process or end does in between comes
at moments that no machine shows by itself. Every byte arrives, and a child's end is an end."""

import pathlib
import sys

import conftest
import program
import pytest

HERE = pathlib.Path(__file__).parent
SECONDS_MAX = 90 * program.SLOWNESS
CONNECTIONS, BYTES = 4, 60000
NO_RECORD = "is no record"
CALLS = ("accept4", "close", "connect", "fcntl", "getsockopt", "recvfrom", "recvmsg", "rt_sigprocmask", "sendmsg",
         "setsockopt", "shutdown")
# The delay stands before the call or behind it, at every third call: others go between a pair of calls, and through.
MOMENTS = {"before": "delay_enter=3ms", "behind": "delay_exit=3ms"}
pytestmark = [pytest.mark.usefixtures("strace"),
              pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")]


def slowly(mode, call, moment, argv):
    preload = mode.environment()["LD_PRELOAD"]
    return mode.start(["strace", "-f", "-qq", "-o", "/dev/null", "-E", f"LD_PRELOAD={preload}", "-e", f"trace={call}",
                       "-e", f"inject={call}:{MOMENTS[moment]}:when=1+3", *argv], LD_PRELOAD="", ANYWARP_LOG="info")


def at_speed(mode, _call, _moment, argv):
    return mode.start(argv, ANYWARP_LOG="info")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", ["edge", "fork"])
@pytest.mark.parametrize("slow", ["server", "client"])
def test_echo(only_iwarp, slow, way, call, moment):
    serve, ask = (slowly, at_speed) if slow == "server" else (at_speed, slowly)
    server = serve(only_iwarp, call, moment, [sys.executable, HERE / "echo_server.py", way, program.free_port()])
    port = server.wait_output(r"port (\d+)\n", SECONDS_MAX)[1]
    client = ask(only_iwarp, call, moment, [sys.executable, HERE / "echo_client.py", port, CONNECTIONS, BYTES])
    assert client.wait_exit(SECONDS_MAX) == 0, client.report() + server.report()
    assert NO_RECORD not in client.output() + server.output(), only_iwarp.reports()


URGENT = r"""
import select, socket, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
poll = select.poll()
poll.register(server, select.POLLIN | select.POLLPRI)
for round in range(24):
    client.send(b"x")
    time.sleep(round % 12 / 2000)  # the urgent byte comes at any moment of the proxy process's turn
    client.send(b"u", socket.MSG_OOB)
    ordinary, urgent = b"", b""
    while len(ordinary) + len(urgent) < 2:
        for _, events in poll.poll():
            if events & select.POLLPRI:
                urgent += server.recv(1, socket.MSG_OOB)
            elif events & select.POLLIN:
                ordinary += server.recv(16)
    assert (ordinary, urgent) == (b"x", b"u"), (round, ordinary, urgent)
print("all urgent")
"""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("call", ["ioctl", "recvfrom", "sendto"])
def test_urgent_byte(only_proxy, call, moment):
    run = slowly(only_proxy, call, moment, [sys.executable, "-c", URGENT])
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    assert "all urgent" in run.output()
