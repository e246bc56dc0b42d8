# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Many connections to crowd_server.py at once: all are open before the first of them says anything; rounds of messages on
each, then the end of each. One thread, epoll."""

import random
import resource
import select
import socket
import sys

ROUNDS = 3
OCTETS_MAX = 20_000


class Link:
    def __init__(self, number, address):
        self.chance = random.Random(number)
        self.sock = socket.create_connection(address)
        self.sock.setblocking(False)
        self.rounds, self.out, self.due = 0, b"", b""

    def begin(self):
        self.out = self.due = self.chance.randbytes(self.chance.randrange(1, OCTETS_MAX))
        self.rounds += 1

    def turn(self, events):
        """True once the server has closed, after all rounds."""
        if events & select.EPOLLOUT and self.out:
            self.out = self.out[self.sock.send(self.out):]
        if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            return False
        got = self.sock.recv(65536)
        assert self.due.startswith(got) and (got or self.rounds > ROUNDS), f"round {self.rounds}: {len(got)} octets"
        self.due = self.due[len(got):]
        if got and not self.due:
            if self.rounds < ROUNDS:
                self.begin()
            else:
                self.rounds += 1
                self.sock.shutdown(socket.SHUT_WR)
        return not got


def main(address, port, count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    poll, links = select.epoll(), {}
    for number in range(int(count)):
        link = Link(number, (address, int(port)))
        links[link.sock.fileno()] = link
    for fd, link in links.items():
        link.begin()
        poll.register(fd, select.EPOLLIN | select.EPOLLOUT)
    while links:
        for fd, events in poll.poll():
            link = links[fd]
            if link.turn(events):
                poll.unregister(fd)
                del links[fd]
                link.sock.close()
            else:
                poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if link.out else 0))
    print(f"{count} connections are right")


main(*sys.argv[1:])
