# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Whether a program listens is asked of the kernel, as every test does that waits for a server."""

import os
import socket
import subprocess
import sys

import driver_path  # noqa: F401
import program
import pytest

BOTH = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
# In a network of its own.
LISTEN = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=BOTH, ids=["ipv4", "ipv6"])
def sock(request):
    family, address = request.param
    with socket.socket(family) as made:
        try:
            made.bind((address, 0))
        except OSError as error:
            pytest.skip(f"no {address} here: {error}")
        yield made


def test_who_listens_is_found_and_who_is_bound_or_connected_is_not(sock):
    me, (address, port) = os.getpid(), sock.getsockname()[:2]
    assert not program.is_listening(me, port)
    sock.listen()
    with socket.create_connection((address, port)) as client:
        assert program.listens_here(port) and program.is_listening(me, port)
        assert not program.is_listening(me, client.getsockname()[1])
        server = sock.accept()[0]
        sock.close()
        assert not program.is_listening(me, port), "its connection has the port, and does not listen"
        server.close()


def test_one_among_many_listeners_is_found():
    """More than one datagram of the kernel's has room for, did it tell of all."""
    with socket.socket() as last:
        last.bind(("127.0.0.1", 0))
        port = last.getsockname()[1]
        others = [socket.create_server(("127.0.0.1", 0)) for _ in range(200)]
        assert not program.listens_here(port)
        last.listen()
        assert program.listens_here(port) and all(program.listens_here(each.getsockname()[1]) for each in others)
        for each in others:
            each.close()


def test_another_network_has_its_own_listeners():
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    port = program.free_port()
    with subprocess.Popen([*unshare, sys.executable, "-c", LISTEN, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as there:
        assert there.stdout.readline() == f"{port}\n"
        assert program.is_listening(there.pid, port)
        assert not program.listens_here(port) and not program.is_listening(os.getpid(), port)
        there.stdin.close()


def test_where_the_kernel_has_no_such_netlink_its_tables_are_read(sock, monkeypatch):
    monkeypatch.setattr(program, "SOCK_DIAG_BY_FAMILY", 1234)
    port = sock.getsockname()[1]
    with pytest.raises(OSError):
        program.listens_here(port)
    assert not program.is_listening(os.getpid(), port)
    sock.listen()
    assert program.is_listening(os.getpid(), port)
