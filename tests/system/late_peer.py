# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Both ends of test_sockets_late.py: `late_peer.py serve|connect SCENE PORT`. One of them comes to the connection
only when the test says so, by the FIFO that AW_GO names."""

import os
import select
import sys

from sockets_ends import dial, dial_nonblocking, listen, read_all, read_exactly

WORDS = b"octets that are early"


def wait_for_go():
    with open(os.environ["AW_GO"], encoding="ascii") as fifo:
        fifo.read()


def answer(conn):
    assert read_exactly(conn, len(WORDS)) == WORDS
    conn.sendall(b"yes")


def listener_at(port):
    """Says so once clients in auto are answered, too, and not only the kernel listens."""
    listener = listen(port)
    print("listens", flush=True)
    return listener


def serve_accepts(port):
    listener = listener_at(port)
    wait_for_go()
    answer(listener.accept()[0])


def serve_touches(port):
    conn, _ = listener_at(port).accept()
    wait_for_go()
    answer(conn)


def serve_waits(port):
    answer(listener_at(port).accept()[0])


def serve_forks(port):
    """The child waits on, and the parent is gone."""
    conn, _ = listener_at(port).accept()
    if os.fork() != 0:
        os._exit(0)
    answer(conn)


def connect_speaks(port):
    sock = dial(port)
    sock.sendall(WORDS)
    assert read_all(sock) == b"yes"


def connect_polls(port):
    sock = dial_nonblocking(port)
    with select.epoll() as epoll:
        epoll.register(sock, select.EPOLLOUT)
        assert epoll.poll(60) == [(sock.fileno(), select.EPOLLOUT)]
        sock.sendall(WORDS)
        epoll.modify(sock, select.EPOLLIN)
        assert epoll.poll(60)
    assert sock.recv(10) == b"yes"


def connect_closes(port):
    """The server finds all of it, and nobody to answer."""
    dial(port).sendall(WORDS)


def connect_forks(port):
    sock = dial(port)
    sock.sendall(WORDS)
    if os.fork() != 0:
        os._exit(0)
    assert read_all(sock) == b"yes"


def connect_waits(port):
    sock = dial_nonblocking(port)  # iWARP begins when the program looks how that has ended
    print("connected", flush=True)
    wait_for_go()
    sock.setblocking(True)
    sock.sendall(WORDS)
    assert read_all(sock) == b"yes"


if __name__ == "__main__":
    globals()[f"{sys.argv[1]}_{sys.argv[2]}"](int(sys.argv[3]))
