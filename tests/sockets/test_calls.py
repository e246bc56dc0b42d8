# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""System calls that the library adds to a program's own, counted by strace. A program that is loaded once and then calls N times is
compared with one that calls 0 times."""

import re
import socket
import sys

import conftest
import pytest

CALLS = 1000
SECONDS_MAX = conftest.program.SECONDS_MAX
pytestmark = [pytest.mark.usefixtures("strace"),
              pytest.mark.skipif(bool(conftest.SANITIZER), reason="the programs are other people's")]

# As redis-benchmark does it: the socket does not block while it connects.
PROGRAM = """
import select, socket, sys
sock = socket.socket()
sock.setblocking(False)
sock.connect_ex(("127.0.0.1", int(sys.argv[1])))
events = select.epoll()
events.register(sock, select.EPOLLOUT)
assert events.poll(10)
for _ in range(int(sys.argv[2])):
    events.modify(sock, select.EPOLLIN)
"""


def count_calls(mode, tmp_path, name, port, times):
    """How often PROGRAM makes the system call, which the library makes to keep signals away."""
    output = tmp_path / f"calls{times}"
    env = mode.environment()
    run = mode.start(["strace", "-f", "-c", "-o", output, "-e", f"trace={name}", "-E", f"LD_PRELOAD={env['LD_PRELOAD']}",
                      sys.executable, "-c", PROGRAM, port, times], LD_PRELOAD="")
    assert run.wait_exit(SECONDS_MAX) == 0, run.report()
    found = re.search(rf"^ *\S+ +\S+ +\S+ +(\d+).* {name}$", output.read_text(), re.M)
    assert found, output.read_text()  # the library makes some as it is loaded
    return int(found[1])


@pytest.mark.parametrize("name", ["pass"])
def test_connected_tcp_socket_costs_no_lock_in_epoll_ctl(name, request, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for mode in conftest.open_mode(request, tmp_path, name):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            none, many = (count_calls(mode, tmp_path, "rt_sigprocmask", port, times) for times in (0, CALLS))
        assert many - none < CALLS / 10, f"{none} and {many}"
