# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the scenes of test_sockets_scenes.py are made of: an ordinary sockets program's calls."""

import errno
import random
import socket

LOCALHOST = "127.0.0.1"
SERVE, CONNECT = {}, {}


def serve(function):
    SERVE[function.__name__.removeprefix("serve_")] = function
    return function


def connect(function):
    CONNECT[function.__name__.removeprefix("connect_")] = function
    return function


def listen(port, address=LOCALHOST):
    listener = socket.create_server((address, port), backlog=512)
    print("listening", flush=True)
    return listener


def accept(port):
    listener = listen(port)
    conn, _ = listener.accept()
    listener.close()
    return conn


def dial(port):
    return socket.create_connection((LOCALHOST, port), timeout=None)


def read_exactly(sock, length):
    got = bytearray()
    while len(got) < length:
        octets = sock.recv(min(65536, length - len(got)))
        assert octets, f"the stream ended after {len(got)} of {length}"
        got += octets
    return bytes(got)


def read_all(sock):
    got = bytearray()
    while octets := sock.recv(65536):
        got += octets
    return bytes(got)


def pattern(length, seed=1):
    return random.Random(seed).randbytes(length)


def expect_errno(number, call, *args):
    try:
        call(*args)
    except OSError as error:
        assert error.errno == number, error
        return
    raise AssertionError(f"no {errno.errorcode[number]}")


def dial_nonblocking(port):
    sock = socket.socket()
    sock.setblocking(False)
    result = sock.connect_ex((LOCALHOST, port))
    assert result in (0, errno.EINPROGRESS), result
    return sock


@serve
def serve_echo(port):
    conn = accept(port)
    while octets := conn.recv(50000):
        conn.sendall(octets)


# Who connects here finds an echo.
SERVE["connect_poll"] = SERVE["connect_select"] = SERVE["connect_epoll"] = serve_echo
SERVE["epoll_edge"] = SERVE["epoll_oneshot"] = SERVE["epoll_early"] = serve_echo
SERVE["connect_twice"] = SERVE["names"] = SERVE["dup"] = SERVE["stdio"] = serve_echo
SERVE["options"] = SERVE["spawn"] = SERVE["threads"] = SERVE["forkbomb"] = serve_echo
