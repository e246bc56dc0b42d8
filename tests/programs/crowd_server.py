# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Gives back what comes on many connections: one thread, epoll, level- or edge-triggered."""

import collections
import resource
import select
import socket
import sys

PIECE = 65536
HELD_MAX = 256 * 1024  # of a connection that does not take its answers: no more is read meanwhile


class Link:
    def __init__(self, sock):
        self.sock, self.waiting, self.ended = sock, bytearray(), False

    def read(self):
        """Until nothing is left, as an edge asks for."""
        while not self.ended and len(self.waiting) < HELD_MAX:
            piece = self.sock.recv(PIECE)
            self.ended = not piece
            self.waiting += piece
            self.write()

    def write(self):
        while self.waiting:
            del self.waiting[:self.sock.send(self.waiting[:PIECE])]

    def turn(self):
        """All that can be done now; whether more is to come."""
        for step in (self.write, self.read):
            try:
                step()
            except BlockingIOError:
                pass
        return not self.ended or bool(self.waiting)


def main(address, port, trigger):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    edge = select.EPOLLET if trigger == "edge" else 0
    listener = socket.create_server((address, int(port)), backlog=1024)
    poll, links = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                sock = listener.accept()[0]
                sock.setblocking(False)
                links[sock.fileno()] = Link(sock)
                poll.register(sock, select.EPOLLIN | (select.EPOLLOUT | edge if edge else 0))
                continue
            link = links[fd]
            if not link.turn():
                del links[fd]
                link.sock.close()
            elif not edge:
                full = len(link.waiting) >= HELD_MAX
                poll.modify(fd, (0 if full or link.ended else select.EPOLLIN) |
                            (select.EPOLLOUT if link.waiting else 0))


main(*sys.argv[1:])
