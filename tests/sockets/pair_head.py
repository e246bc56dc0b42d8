# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the scripts of test_pair_ways.py share: how a connection is made, and what the kernel has for an fd."""

import ctypes
import os
import select
import socket
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
SYS = {"x86_64": {"getsockname": 51, "accept": 43, "connect": 42, "read": 0, "write": 1, "io_setup": 206, "io_submit": 209,
                  "io_getevents": 208},
       "aarch64": {"getsockname": 204, "accept": 202, "connect": 203, "read": 63, "write": 64, "io_setup": 0, "io_submit": 2,
                   "io_getevents": 4}}[os.uname().machine]


def raw(name, *args):
    """A system call that no wrapper sees, but those that libanywarp-sockets(7) names."""
    result = LIBC.syscall(SYS[name], *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def kind(sock):
    name, length = ctypes.create_string_buffer(128), ctypes.c_int(128)
    raw("getsockname", sock if isinstance(sock, int) else sock.fileno(), name, ctypes.byref(length))
    return "pair" if name.raw[0] == socket.AF_UNIX else "tcp"


def raw_address(sock):
    port = sock.getsockname()[1]
    return bytes([2, 0]) + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)


def in_thread(run):
    """Starts run. Returns a function that waits for it, and returns its result; its await_sleep waits until run has ended or polls, or
    sleeps where it is said."""
    results = []

    def call():
        try:
            results.append((run(), None))
        except BaseException as error:  # pylint: disable=broad-except
            results.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()

    def join():
        thread.join(20)
        assert results, "hangs"
        if results[0][1]:
            raise results[0][1]
        return results[0][0]

    def await_sleep(where="poll"):
        while thread.is_alive():
            try:
                with open(f"/proc/self/task/{thread.native_id}/wchan", encoding="ascii") as file:
                    if where in file.read():
                        return
            except OSError:
                return

    join.await_sleep = await_sleep
    return join


def attended(listener):
    """A client finds only a listener that its program has waited for."""
    select.select([listener], [], [], 0)
    return listener


def listening(address=("127.0.0.1", 0), **more):
    return attended(socket.create_server(address, **more))


def connected(address=("127.0.0.1", 0), family=socket.AF_INET, to=None):
    """A listener and a connection's two ends."""
    listener = listening(address, family=family)
    accepting = in_thread(listener.accept)
    client = socket.socket(socket.AF_INET if to and "." in to and ":" not in to else family)
    client.connect((to or address[0], listener.getsockname()[1]))
    return listener, client, accepting()[0]


def exchange(one, other):
    for source, sink, data in ((one, other, b"there"), (other, one, b"back")):
        source.sendall(data)
        assert sink.recv(len(data), socket.MSG_WAITALL) == data
