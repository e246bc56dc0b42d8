# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Servers that send back what they read: echo_server.py WAY [PORT], one of WAYS; it prints its port. As the child of an exec:
echo_server.py inherited FD."""

import os
import select
import signal
import socket
import sys


def open_listener(port):
    listener = socket.create_server(("127.0.0.1", port), backlog=256)
    print("port", listener.getsockname()[1], flush=True)
    return listener


def serve(sock):
    while data := sock.recv(65536):
        sock.sendall(data)


class Connection:
    """Of an epoll server: what has not been sent back yet."""

    def __init__(self, sock):
        self.sock, self.unsent, self.ended = sock, b"", False
        sock.setblocking(False)

    def turn(self):
        try:
            while data := self.sock.recv(65536):
                self.unsent += data
            self.ended = True
        except BlockingIOError:
            pass
        try:
            while self.unsent:
                self.unsent = self.unsent[self.sock.send(self.unsent):]
        except BlockingIOError:
            pass

    def is_over(self):
        try:
            self.turn()
        except OSError:
            return True
        return self.ended and not self.unsent


def by_epoll(listener, edge=0):
    listener.setblocking(False)
    poll, conns = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                conn = Connection(listener.accept()[0])
                fd = conn.sock.fileno()
                conns[fd] = conn
                poll.register(fd, select.EPOLLIN | edge | (select.EPOLLOUT if edge else 0))
            if conns[fd].is_over():
                poll.unregister(fd)
                conns.pop(fd).sock.close()
            elif not edge:
                poll.modify(fd, select.EPOLLOUT if conns[fd].unsent else select.EPOLLIN)


def by_edge(listener):
    by_epoll(listener, select.EPOLLET)


def by_fork(listener):
    while True:
        sock = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            serve(sock)
            os._exit(0)
        sock.close()


def by_exec(listener):
    """The first octet is sent back before: what the child is left is in full operation. A client that is killed may reset
    its connection before that."""
    while True:
        sock = listener.accept()[0]
        try:
            sock.sendall(sock.recv(1))
        except OSError:
            sock.close()
            continue
        if os.fork() == 0:
            sock.set_inheritable(True)
            os.execv(sys.executable, [sys.executable, __file__, "inherited", str(sock.fileno())])
        sock.close()


WAYS = {"epoll": by_epoll, "edge": by_edge, "fork": by_fork, "exec": by_exec}

if __name__ == "__main__":
    if sys.argv[1] == "inherited":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        WAYS[sys.argv[1]](open_listener(int(sys.argv[2]) if len(sys.argv) > 2 else 0))
