# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rping as users run it: verified pings over IPv4, over IPv6, between network namespaces, by an
unprivileged user, many clients on one server."""

import os
import shutil
import tempfile

import beds
import pytest

import conftest

FULL = 1 if not conftest.SANITIZER else 10
PINGS, BIG = 1000 // FULL, 60000


def rping(start, port, options, address="127.0.0.1", bed=beds.LOOPBACK, prefix=(), env=None):
    """One server, one client with the same options; returns what they printed."""
    server = start.server(f"rping -s -a {address} {options}", port,
                          prefix=[*bed.server_prefix, *prefix], env=env)
    client = start(f"rping -c -a {address} -p {port} {options}",
                   prefix=[*bed.client_prefix, *prefix], env=env)
    assert_pinged(client, int(options.split("-C ")[1].split()[0]))
    assert server.wait_exit() == 0
    return client.output(), server.output()


def assert_pinged(client, count):
    """rping ends with status 0 even when it is disconnected early: its lines are counted."""
    assert client.wait_exit() == 0
    assert client.output().count("ping data: ") == count


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_thousand_big_pings_are_verified(start, port, address):
    client, _ = rping(start, port, f"-C {PINGS} -v -V -S {BIG}", address)
    lines = [line for line in client.splitlines() if line.startswith("ping data: ")]
    assert all(len(line) >= BIG for line in lines)


@pytest.mark.parametrize("size", [23, 64, 1023, 65535])
def test_sizes_are_verified(start, port, size):
    _, server = rping(start, port, f"-C 20 -v -V -S {size}")
    assert server.count("server ping data: ") == 20


def test_wildcard_server(start, port):
    server = start.server("rping -s -C 10 -v -V", port)
    client = start(f"rping -c -a 127.0.0.1 -p {port} -C 10 -v -V")
    assert_pinged(client, 10)
    assert server.wait_exit() == 0


def test_wildcard_server_over_ipv6(start, port):
    server = start.server("rping -s -a ::0 -C 10 -v -V", port)
    client = start(f"rping -c -a ::1 -p {port} -C 10 -v -V")
    assert_pinged(client, 10)
    assert server.wait_exit() == 0


def test_source_address_is_bound(start, port):
    server = start.server("rping -s -C 10 -v -V", port)
    client = start(f"rping -c -I 127.0.0.2 -a 127.0.0.1 -p {port} -C 10 -v -V")
    assert_pinged(client, 10)
    assert server.wait_exit() == 0


@pytest.mark.parametrize("family", ["address", "address6"])
def test_between_namespaces(start, port, veth, family):
    rping(start, port, f"-C {PINGS} -v -V -S {BIG}", getattr(veth, family), veth)


def test_persistent_server_serves_clients_at_once_and_in_turn(start, port):
    """Each client starts when the one before it pings: rping of this age loses one of two Requests
    that come at the same moment."""
    server = start.server("rping -s -P -S 4096", port)
    for _ in range(3):
        clients = []
        for _ in range(4):
            clients.append(start(f"rping -c -a 127.0.0.1 -p {port} -C {PINGS} -v -V -S 4096"))
            clients[-1].wait_output("ping data: ")
        for client in clients:
            assert_pinged(client, PINGS)
    assert server.status() is None


def test_server_restarts_on_its_port_at_once(start, port):
    for _ in range(3):
        rping(start, port, "-C 5 -v -V")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_unprivileged_user(start, port):
    """The build directory may be out of the user's reach; a copy of the libraries is not. It is not
    under pytest's own folder, which every run of pytest closes to others again."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
              "--bounding-set=-all"]
    with tempfile.TemporaryDirectory(prefix="anywarp-nobody-") as folder:
        os.chmod(folder, 0o755)
        libraries = os.path.join(folder, "lib")
        shutil.copytree(conftest.BUILD / "lib", libraries, symlinks=True,
                        ignore=shutil.ignore_patterns("static"))
        env = {**conftest.environment(start.logs), "LD_LIBRARY_PATH": libraries}
        rping(start, port, f"-C {PINGS} -v -V -S {BIG}", prefix=nobody, env=env)
